import schema from 'schema:CreateFault';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { useScope } from '../ui/scope.tsx';
import { showToast } from '../ui/toasts.tsx';
import { FAULTS_PATH, faultsQuery } from './data.ts';

export function CreateFault() {
  const scope = useScope();
  const leave = useLeave();
  const form = useForm({
    schema,
    initial: { resource: 'volume', operation: 'apply', mode: 'fail', count: 1, seconds: '', message: '' },
    send: async (body) => {
      await unwrap(api.POST(FAULTS_PATH, { body: body as never }));
      showToast({ tone: 'ok', text: 'The fault is injected' });
      void queryClient.invalidateQueries({ queryKey: faultsQuery.queryKey });
      await leave({ to: scope.path('development') });
    },
  });
  return (
    <FormDialog
      title="Inject fault"
      form={form}
      submitLabel="Inject fault"
      segments={2}
      call={{ operationId: 'createFault', method: 'POST', path: FAULTS_PATH, params: {} }}
    >
      <div className="field-row">
        <Field form={form} path="resource" label="Resource" help="" />
        <Field form={form} path="operation" label="Operation" help="" />
        <Field form={form} path="mode" label="Effect" help="" />
      </div>
      <div className="field-row">
        <Field form={form} path="count" label="Number of operations" help="" />
        <Field form={form} path="seconds" label="Seconds" />
      </div>
      <Field form={form} path="message" label="Message" />
    </FormDialog>
  );
}
