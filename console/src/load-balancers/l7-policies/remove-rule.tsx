import { ActionDialog } from '../../ui/form/action-dialog.tsx';
import { scopeParams, useScope } from '../../ui/scope.tsx';
import { CurrentPart, useCurrentRule } from '../current.tsx';
import { KIND } from '../data.ts';
import type { L7Policy, L7Rule, LoadBalancer } from '../data.ts';
import { useLockReason } from '../lock.ts';
import { policyTitle, ruleText } from './policy.ts';

export function RemoveL7Rule() {
  return (
    <CurrentPart kind="policies">
      {(policy, { balancer }) => <RemoveCurrentRule policy={policy} balancer={balancer} />}
    </CurrentPart>
  );
}

function RemoveCurrentRule({ policy, balancer }: Omit<RemoveDialogProps, 'rule'>) {
  const rule = useCurrentRule(policy);
  return rule ? <RemoveDialog policy={policy} balancer={balancer} rule={rule} /> : null;
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
      segments={5}
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
      disabledReason={useLockReason(balancer)}
    >
      <p>
        <bdi>{policyTitle(policy)}</bdi> applies to requests that match its other rules. Without a rule it matches
        nothing.
      </p>
    </ActionDialog>
  );
}
