import { useLockReason } from '../../api/session.ts';
import { ActionDialog } from '../../ui/form/action-dialog.tsx';
import { scopeParams, useScope } from '../../ui/scope.tsx';
import { type Current, CurrentPart } from '../current.tsx';
import { KIND, type L7Policy } from '../data.ts';
import { actionOf, policyCall, policyTitle } from './policy.ts';

export function MovePolicyUp() {
  return (
    <CurrentPart kind="policies">
      {(policy, current) => <MoveDialog {...current} policy={policy} by={-1} />}
    </CurrentPart>
  );
}

export function MovePolicyDown() {
  return (
    <CurrentPart kind="policies">{(policy, current) => <MoveDialog {...current} policy={policy} by={1} />}</CurrentPart>
  );
}

interface MoveDialogProps extends Current {
  readonly policy: L7Policy;
  readonly by: -1 | 1;
}

/** Moves a policy one place up or down; the one that is there moves as well. */
function MoveDialog({ balancer, tree, policy, by }: MoveDialogProps) {
  const scope = useScope();
  const title = policyTitle(policy);
  const position = policy.position + by;
  const count = tree.policies.filter(({ listener_id }) => listener_id === policy.listener_id).length;
  const end = position < 1 ? 'It is the first one' : position > count ? 'It is the last one' : null;
  return (
    <ActionDialog
      title={`Move ${title} ${by < 0 ? 'up' : 'down'}`}
      submitLabel="Move"
      calls={[{ ...policyCall(scopeParams(scope), policy.id), body: { ...actionOf(policy as never), position } }]}
      texts={{ busy: `Moving ${title}`, done: `Moved ${title} to position ${position}` }}
      queryKind={KIND}
      to={scope.path('load-balancers', balancer.id)}
      disabledReason={useLockReason(balancer, 'load balancer') ?? end}
    >
      <p>The policy is evaluated at position {position}. Requests that are being served are not interrupted.</p>
    </ActionDialog>
  );
}
