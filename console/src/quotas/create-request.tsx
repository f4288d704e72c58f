import { useQuery } from '@tanstack/react-query';
import { useEffect, useId } from 'react';
import schema from 'schema:CreateQuotaRequest';
import { api, succeeded } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { useLimitedReason } from '../api/session.ts';
import { EditableRows } from '../ui/form/editable-rows.tsx';
import { Field, FieldErrors } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { type Form, useForm } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
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
  const leave = useLeave();
  const { data } = useQuery(quotasQuery);
  const regional = quotasOf(data?.regional_quotas.find(({ region_id }) => region_id === scope.region));
  const global = quotasOf(data?.global_quotas);
  const isGlobal = (kind: string) => global.some((quota) => quota.kind === kind);
  const form = useForm({
    call: { operationId: 'createQuotaRequest', method: 'POST', path: PATH, params: {} },
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
      await succeeded(api.POST(PATH, { body: body as never }));
      showToast({ tone: 'ok', text: 'The request was sent to the operator' });
      void queryClient.invalidateQueries({ queryKey: ['quota_requests'] });
      await leave({ to: scope.path('quotas') });
    },
  });
  const reason = useLimitedReason();
  const isIncomplete = (form.get('rows') as readonly Row[]).some(({ kind, limit }) => kind === '' && limit !== '');
  return (
    <FormDialog
      title="Request higher limits"
      form={form}
      submitLabel="Send request"
      disabledReason={reason ?? (isIncomplete ? 'Choose a quota for each limit' : null)}
    >
      <Limits form={form} quotas={[...regional, ...global]} />
      <Field form={form} path="description" label="Why" type="textarea" help="The operator reads this." />
    </FormDialog>
  );
}

/** `regional_limits.0.volume_count_limit: must be at least 0`, as the form names the problems of a limit. */
const LIMIT_PROBLEM = /^(?:global_limits|regional_limits\.0)\.(\w+)_limit: /;

function Limits({ form, quotas }: { form: Form; quotas: ReturnType<typeof quotasOf> }) {
  const id = useId();
  const rows = form.get('rows') as readonly Row[];
  const set = (next: readonly Row[]) => form.set('rows', next);
  useEffect(() => form.register('requested_limits'));
  const problems = form.errorsAt('requested_limits');
  const faulty = problems.map((problem) => LIMIT_PROBLEM.exec(problem)?.[1]);
  const errors = problems.map((problem) =>
    problem.replace(LIMIT_PROBLEM, (_, kind: string) => `${quotaTitle(kind)}: `),
  );
  const options = quotas.map(({ kind, limit }) => ({ kind, text: `${quotaTitle(kind)} (now ${formatNumber(limit)})` }));
  // A quota has one limit.
  const optionsFor = (kind: string) =>
    options.filter((option) => option.kind === kind || rows.every((row) => row.kind !== option.kind));
  return (
    <fieldset className="field" aria-describedby={`${id}-error`}>
      <legend>Limits</legend>
      <EditableRows rows={rows} set={set} newRow={{ kind: '', limit: '' }} what="limit">
        {({ kind, limit }, replace, number) => (
          <>
            <select
              aria-label={`Quota ${number}`}
              value={kind}
              onChange={({ target }) => replace({ kind: target.value, limit })}
            >
              <option value="">Choose…</option>
              {optionsFor(kind).map((option) => (
                <option key={option.kind} value={option.kind}>
                  {option.text}
                </option>
              ))}
            </select>
            <input
              aria-label={`New limit ${number}`}
              aria-invalid={faulty.includes(kind)}
              aria-describedby={`${id}-error`}
              type="number"
              min={0}
              placeholder="New limit"
              value={limit}
              onChange={({ target }) => replace({ kind, limit: target.value === '' ? '' : Number(target.value) })}
            />
          </>
        )}
      </EditableRows>
      <FieldErrors id={`${id}-error`} errors={errors} />
    </fieldset>
  );
}
