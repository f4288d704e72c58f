import schema from 'schema:UpdateLifecyclePolicy';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { CurrentPolicy, POLICY, type Policy, policyParams } from './data.ts';
import { usePolicyForm } from './policy-form.ts';

export function PausePolicy() {
  return <CurrentPolicy>{(policy) => <StatusDialog policy={policy} status="paused" />}</CurrentPolicy>;
}

export function ResumePolicy() {
  return <CurrentPolicy>{(policy) => <StatusDialog policy={policy} status="active" />}</CurrentPolicy>;
}

function StatusDialog({ policy, status }: { policy: Policy; status: Policy['status'] }) {
  const params = policyParams(useScope(), policy.id);
  const call = { operationId: 'updateLifecyclePolicy', method: 'PATCH', path: POLICY, params };
  const isPause = status === 'paused';
  const form = usePolicyForm({
    policy,
    schema,
    call,
    initial: { status },
    done: () => `${isPause ? 'Paused' : 'Resumed'} ${policy.name}`,
  });
  return (
    <FormDialog
      title={`${isPause ? 'Pause' : 'Resume'} ${policy.name}`}
      form={form}
      submitLabel={isPause ? 'Pause' : 'Resume'}
      call={call}
    >
      <p>
        {isPause
          ? 'While the policy is paused, no schedule runs and no snapshot expires. Existing snapshots are kept.'
          : 'Each schedule continues with its next run time. Runs that were skipped are not repeated, and snapshots that are too old are deleted at once.'}
      </p>
    </FormDialog>
  );
}
