import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import schema from 'schema:CreateQuotaRequest';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useFocusAdded } from '../ui/form/use-focus-added.ts';
import { useForm } from '../ui/form/use-form.ts';
import type { Form } from '../ui/form/use-form.ts';
import { Icon } from '../ui/icons.tsx';
import { formatNumber } from '../ui/numbers.ts';
import { useScope } from '../ui/scope.tsx';
import { showToast } from '../ui/toasts.tsx';
import { quotasOf, quotasQuery } from './data.ts';
import { quotaTitle } from './gauges.tsx';

interface Row {
  readonly kind: string;
  readonly limit: number | string;
}

const PATH = '/cloud/v2/limits_request';

/** Asks for limits in the region of the URL, and for those that hold everywhere. */
export function CreateQuotaRequest() {
  const scope = useScope();
  const navigate = useNavigate();
  const { data } = useQuery(quotasQuery);
  const regional = quotasOf(data?.regional_quotas.find(({ region_id }) => region_id === scope.region));
  const global = quotasOf(data?.global_quotas);
  const isGlobal = (kind: string) => global.some((quota) => quota.kind === kind);
  const form = useForm({
    schema,
    initial: { description: '', rows: [{ kind: '', limit: '' }] },
    toBody: (values) => {
      const rows = (values['rows'] as readonly Row[]).filter(({ kind }) => kind !== '');
      const limits = (chosen: readonly Row[]) =>
        Object.fromEntries(chosen.map(({ kind, limit }) => [`${kind}_limit`, limit]));
      const [everywhere, here] = [rows.filter((row) => isGlobal(row.kind)), rows.filter((row) => !isGlobal(row.kind))];
      return {
        ...(values['description'] === '' ? {} : { description: values['description'] }),
        requested_limits: {
          ...(everywhere.length > 0 ? { global_limits: limits(everywhere) } : {}),
          ...(here.length > 0 ? { regional_limits: [{ region_id: scope.region, ...limits(here) }] } : {}),
        },
      };
    },
    send: async (body) => {
      await unwrap(api.POST(PATH, { body: body as never }));
      showToast({ tone: 'ok', text: 'The request was sent to the operator' });
      void queryClient.invalidateQueries({ queryKey: ['quota_requests'] });
      await navigate({ to: scope.path('quotas') });
    },
  });
  return (
    <FormDialog
      title="Request higher limits"
      form={form}
      submitLabel="Send request"
      segments={2}
      call={{ operationId: 'createQuotaRequest', method: 'POST', path: PATH, params: {} }}
    >
      <Limits form={form} quotas={[...regional, ...global]} />
      <Field form={form} path="description" label="Why" type="textarea" help="The operator reads this." />
    </FormDialog>
  );
}

function Limits({ form, quotas }: { form: Form; quotas: ReturnType<typeof quotasOf> }) {
  const rows = form.get('rows') as readonly Row[];
  const set = (next: readonly Row[]) => form.set('rows', next);
  const { list, added } = useFocusAdded();
  const add = () => {
    set([...rows, { kind: '', limit: '' }]);
    added();
  };
  const replace = (index: number, row: Row) => set(rows.map((each, at) => (at === index ? row : each)));
  const options = quotas.map(({ kind, limit }) => ({ kind, text: `${quotaTitle(kind)} (now ${formatNumber(limit)})` }));
  return (
    <fieldset className="field">
      <legend>Limits</legend>
      <div className="rows" ref={list}>
        {rows.map(({ kind, limit }, index) => (
          <div key={index} className="rows-item">
            <select
              aria-label={`Quota ${index + 1}`}
              value={kind}
              onChange={(event) => replace(index, { kind: event.target.value, limit })}
            >
              <option value="">Choose…</option>
              {options.map((option) => (
                <option key={option.kind} value={option.kind}>
                  {option.text}
                </option>
              ))}
            </select>
            <input
              aria-label={`New limit ${index + 1}`}
              type="number"
              min={1}
              placeholder="New limit"
              value={limit}
              onChange={(event) =>
                replace(index, { kind, limit: event.target.value === '' ? '' : Number(event.target.value) })
              }
            />
            <button
              type="button"
              className="button quiet icon"
              aria-label={`Remove limit ${index + 1}`}
              onClick={() => set(rows.filter((_, at) => at !== index))}
            >
              <Icon name="trash" />
            </button>
          </div>
        ))}
        <div>
          <button type="button" className="button small" onClick={add}>
            <Icon name="plus" /> Add
          </button>
        </div>
      </div>
    </fieldset>
  );
}
