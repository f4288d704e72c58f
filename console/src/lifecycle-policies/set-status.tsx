import schema from 'schema:UpdateLifecyclePolicy';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { useScope } from '../ui/scope.tsx';
import { CurrentPolicy, KIND, POLICY, type Policy, policyParams } from './data.ts';

export function PausePolicy() {
  return <CurrentPolicy>{(policy) => <StatusDialog policy={policy} status="paused" />}</CurrentPolicy>;
}

export function ResumePolicy() {
  return <CurrentPolicy>{(policy) => <StatusDialog policy={policy} status="active" />}</CurrentPolicy>;
}

function StatusDialog({ policy, status }: { policy: Policy; status: Policy['status'] }) {
  const scope = useScope();
  const params = policyParams(scope, policy.id);
  const isPause = status === 'paused';
  const form = useRequestForm({
    call: { operationId: 'updateLifecyclePolicy', method: 'PATCH', path: POLICY, params },
    schema,
    initial: { status },
    queryKind: KIND,
    sent: () => ({
      done: `${isPause ? 'Paused' : 'Resumed'} ${policy.name}`,
      to: scope.path('lifecycle-policies', policy.id),
    }),
  });
  return (
    <FormDialog
      title={`${isPause ? 'Pause' : 'Resume'} ${policy.name}`}
      form={form}
      submitLabel={isPause ? 'Pause' : 'Resume'}
    >
      <p>
        {isPause
          ? 'While the policy is paused, no schedule runs and no snapshot expires. Existing snapshots are kept.'
          : 'Each schedule continues with its next run time. Runs that were skipped are not repeated, and snapshots that are too old are deleted at once.'}
      </p>
    </FormDialog>
  );
}
