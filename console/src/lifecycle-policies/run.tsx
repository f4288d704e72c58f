import { ActionDialog } from '../ui/form/action-dialog.tsx';
import { formatNumber } from '../ui/numbers.ts';
import { useScope } from '../ui/scope.tsx';
import { CurrentPolicy, KIND, OWN_POLICY, type Policy, policyParams } from './data.ts';

/** Runs the schedules of a policy at once. */
export function RunPolicy() {
  return <CurrentPolicy>{(policy) => <RunDialog policy={policy} />}</CurrentPolicy>;
}

function RunDialog({ policy }: { policy: Policy }) {
  const scope = useScope();
  const count = policy.schedules.length * (policy.volumes?.length ?? 0);
  return (
    <ActionDialog
      title={`Run ${policy.name} now`}
      submitLabel="Run now"
      calls={[
        {
          operationId: 'runLifecyclePolicy',
          method: 'POST',
          path: `${OWN_POLICY}/run`,
          params: policyParams(scope, policy.id),
          body: {},
        },
      ]}
      texts={{ busy: `Running ${policy.name}`, done: `Ran ${policy.name}` }}
      queryKind={KIND}
      to={scope.path('lifecycle-policies', policy.id)}
      search={{ tab: 'calendar' }}
      disabledReason={notRunnableReason(policy)}
    >
      <p>
        {count === 1 ? '1 snapshot is' : `${formatNumber(count)} snapshots are`} created now: one per volume and
        schedule. They count toward retention and quotas like snapshots of scheduled runs. The next scheduled run is
        unchanged.
      </p>
    </ActionDialog>
  );
}

export function notRunnableReason({ status, schedules }: Policy): string | null {
  if (status === 'paused') return 'The policy is paused';
  return schedules.length === 0 ? 'The policy has no schedule' : null;
}
