import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import schema from 'schema:UpdateClientQuotas';
import { useId } from 'react';
import { useNotOperatorReason } from '../api/session.ts';
import { allQuotasOf, clientQuotasQuery, type Figures, type Quota } from '../quotas/data.ts';
import { quotaTitle } from '../quotas/gauges.tsx';
import { DialogRoute } from '../ui/dialog.tsx';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useInitial } from '../ui/form/use-form.ts';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { formatNumber } from '../ui/numbers.ts';
import { useScope } from '../ui/scope.tsx';
import { NotLoaded } from '../ui/states.tsx';
import { type Client, clientQuery } from './data.ts';

const PATH = '/cloudyard/v1/clients/{client_id}/quotas';

/** Sets one limit of a client, in the region of the URL or in all regions. */
export function SetClientLimit() {
  const { id } = useParams({ strict: false }) as { id: string };
  const client = useQuery(clientQuery(Number(id)));
  const quotas = useQuery(clientQuotasQuery(useScope(), Number(id)));
  if (client.data && quotas.data) return <LimitDialog client={client.data} {...quotas.data} />;
  return (
    <DialogRoute title="Set limit">
      <NotLoaded query={client.data ? quotas : client} />
    </DialogRoute>
  );
}

interface LimitDialogProps {
  readonly client: Client;
  readonly regional: Figures;
  readonly global: Figures;
}

function LimitDialog({ client, regional, global }: LimitDialogProps) {
  const scope = useScope();
  const initial = useInitial<Figures>({ kind: '', ...regional, ...global });
  const notOperator = useNotOperatorReason();
  const form = useRequestForm({
    call: { operationId: 'updateClientQuotas', method: 'PATCH', path: PATH, params: { client_id: client.id } },
    schema,
    isEdit: true,
    initial,
    toBody: ({ kind, ...limits }) => {
      if (kind === '') return {};
      const name = `${String(kind)}_limit`;
      return {
        ...(name in global ? {} : { region_id: scope.region }),
        [name]: limits[name] === '' ? null : limits[name],
      };
    },
    queryKind: 'quotas',
    sent: () => ({
      done: `Set a limit of client ${client.name}`,
      to: scope.path('clients', client.id),
      search: { tab: 'quotas' },
    }),
  });
  const kind = String(form.get('kind'));
  const isUnchanged = form.get(`${kind}_limit`) === initial[`${kind}_limit`];
  return (
    <FormDialog
      title={`Set a limit of ${client.name}`}
      form={form}
      submitLabel="Set limit"
      disabledReason={notOperator ?? (kind === '' ? 'Choose a quota' : isUnchanged ? 'Nothing has changed' : null)}
    >
      <QuotaChoice kind={kind} set={(next) => form.set('kind', next)} regional={regional} global={global} />
      {kind !== '' && (
        <Field
          key={kind}
          form={form}
          path={`${kind}_limit`}
          label="Limit"
          help="Empty: the default. A limit below the usage only prevents growth."
        />
      )}
    </FormDialog>
  );
}

interface QuotaChoiceProps {
  readonly kind: string;
  readonly set: (kind: string) => void;
  readonly regional: Figures;
  readonly global: Figures;
}

function QuotaChoice({ kind, set, regional, global }: QuotaChoiceProps) {
  const id = useId();
  const places = { 'This region': allQuotasOf(regional), 'All regions': allQuotasOf(global) };
  return (
    <div className="field">
      <label htmlFor={id}>Quota</label>
      <select id={id} value={kind} onChange={({ target }) => set(target.value)}>
        <option value="">Choose…</option>
        {Object.entries(places).map(([place, quotas]) => (
          <optgroup key={place} label={place}>
            {quotas.map((quota) => (
              <option key={quota.kind} value={quota.kind}>
                {textOf(quota)}
              </option>
            ))}
          </optgroup>
        ))}
      </select>
    </div>
  );
}

/** `Volumes (3 of 1,000)`. */
function textOf({ kind, limit, usage }: Quota): string {
  return `${quotaTitle(kind)} (${formatNumber(usage)} of ${formatNumber(limit)})`;
}
