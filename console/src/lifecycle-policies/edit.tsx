import schema from 'schema:UpdateLifecyclePolicy';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useInitial } from '../ui/form/use-form.ts';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { useScope } from '../ui/scope.tsx';
import { CurrentPolicy, KIND, POLICY, type Policy, policyParams } from './data.ts';

export function EditPolicy() {
  return <CurrentPolicy>{(policy) => <EditDialog policy={policy} />}</CurrentPolicy>;
}

function EditDialog({ policy: current }: { policy: Policy }) {
  const policy = useInitial(current);
  const scope = useScope();
  const params = policyParams(scope, policy.id);
  const form = useRequestForm({
    call: { operationId: 'updateLifecyclePolicy', method: 'PATCH', path: POLICY, params },
    schema,
    initial: { name: policy.name },
    isEdit: true,
    queryKind: KIND,
    sent: ({ name }) => ({
      done: `Renamed ${policy.name} to ${String(name)}`,
      to: scope.path('lifecycle-policies', policy.id),
    }),
  });
  return (
    <FormDialog title={`Edit ${policy.name}`} form={form} submitLabel="Save">
      <Field form={form} path="name" label="Name" />
    </FormDialog>
  );
}
