import schema from 'schema:CreateFault';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { useScope } from '../ui/scope.tsx';
import { FAULTS_PATH, faultsQuery } from './data.ts';

export function CreateFault() {
  const scope = useScope();
  const form = useRequestForm({
    call: { operationId: 'createFault', method: 'POST', path: FAULTS_PATH, params: {} },
    schema,
    initial: { resource: 'volume', operation: 'apply', mode: 'fail', count: 1, seconds: '', message: '' },
    queryKind: faultsQuery.queryKey[0]!,
    sent: () => ({ done: 'The fault is injected', to: scope.path('development') }),
  });
  return (
    <FormDialog title="Inject fault" form={form} submitLabel="Inject fault">
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
