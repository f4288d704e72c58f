import { useLockReason } from '../../api/session.ts';
import { ActionDialog } from '../../ui/form/action-dialog.tsx';
import { scopeParams, useScope } from '../../ui/scope.tsx';
import { CurrentPart, CurrentRule } from '../current.tsx';
import { KIND, type L7Policy, type L7Rule, type LoadBalancer } from '../data.ts';
import { policyTitle, ruleText } from './policy.ts';

export function RemoveL7Rule() {
  return (
    <CurrentPart kind="policies">
      {(policy, { balancer }) => (
        <CurrentRule policy={policy}>
          {(rule) => <RemoveDialog policy={policy} balancer={balancer} rule={rule} />}
        </CurrentRule>
      )}
    </CurrentPart>
  );
}

interface RemoveDialogProps {
  readonly balancer: LoadBalancer;
  readonly policy: L7Policy;
  readonly rule: L7Rule;
}

function RemoveDialog({ balancer, policy, rule }: RemoveDialogProps) {
  const scope = useScope();
  const text = ruleText(rule);
  return (
    <ActionDialog
      title={`Remove the rule ${text}`}
      submitLabel="Remove"
      isDangerous
      calls={[
        {
          operationId: 'deleteL7Rule',
          method: 'DELETE',
          path: '/cloud/v1/l7policies/{project_id}/{region_id}/{l7policy_id}/rules/{l7rule_id}',
          params: { ...scopeParams(scope), l7policy_id: policy.id, l7rule_id: rule.id },
        },
      ]}
      texts={{ busy: `Removing the rule ${text}`, done: `Removed the rule ${text}` }}
      queryKind={KIND}
      to={scope.path('load-balancers', balancer.id)}
      disabledReason={useLockReason(balancer, 'load balancer')}
    >
      <p>
        <bdi>{policyTitle(policy)}</bdi> applies to requests that match its other rules. Without a rule it matches
        nothing.
      </p>
    </ActionDialog>
  );
}
