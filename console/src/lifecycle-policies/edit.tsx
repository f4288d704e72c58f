import schema from 'schema:UpdateLifecyclePolicy';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useInitial } from '../ui/form/use-form.ts';
import { useScope } from '../ui/scope.tsx';
import { CurrentPolicy, POLICY, type Policy, policyParams } from './data.ts';
import { usePolicyForm } from './policy-form.ts';

export function EditPolicy() {
  return <CurrentPolicy>{(policy) => <EditDialog policy={policy} />}</CurrentPolicy>;
}

function EditDialog({ policy: current }: { policy: Policy }) {
  const policy = useInitial(current);
  const params = policyParams(useScope(), policy.id);
  const call = { operationId: 'updateLifecyclePolicy', method: 'PATCH', path: POLICY, params };
  const form = usePolicyForm({
    policy,
    schema,
    call,
    initial: { name: policy.name },
    isEdit: true,
    done: ({ name }) => `Renamed ${policy.name} to ${String(name)}`,
  });
  return (
    <FormDialog title={`Edit ${policy.name}`} form={form} submitLabel="Save" call={call}>
      <Field form={form} path="name" label="Name" />
    </FormDialog>
  );
}
