/** Pure: L7 policies and rules as the API returns them. */
import type { OperatingStatus, ProvisioningStatus } from '../shapes.ts';
import type { L7Rule } from './rules/schema.ts';
import type { L7RuleView } from './rules/store.ts';
import type { L7Policy } from './schema.ts';
import type { L7PolicyView } from './store.ts';

export function policyToResponse(policy: L7PolicyView, region: string): L7Policy {
  const place = { project_id: policy.projectId, region, region_id: policy.regionId };
  return {
    id: policy.id,
    ...place,
    action: policy.action,
    listener_id: policy.listenerId,
    name: policy.name,
    ...statusesOf(policy, policy.listenerStatus),
    position: policy.position,
    redirect_http_code: policy.redirectHttpCode,
    redirect_pool_id: policy.redirectPoolId,
    redirect_prefix: policy.redirectPrefix,
    redirect_url: policy.redirectUrl,
    rules: policy.ruleIds.map((id) => ({ id, ...place })),
    tags: policy.tags,
    task_id: policy.taskId,
  };
}

export function ruleToResponse(rule: L7RuleView, region: string): L7Rule {
  return {
    id: rule.id,
    project_id: rule.projectId,
    region,
    region_id: rule.regionId,
    compare_type: rule.compareType,
    invert: rule.invert,
    key: rule.key,
    ...statusesOf(rule, rule.listenerStatus),
    tags: rule.tags,
    task_id: rule.taskId,
    type: rule.type,
    value: rule.value,
  };
}

/** The statuses of a policy or rule. It works while its listener listens; members have no part in it. */
export function statusesOf(
  { provisioningStatus }: { provisioningStatus: ProvisioningStatus },
  listener: OperatingStatus,
): { operating_status: OperatingStatus; provisioning_status: ProvisioningStatus } {
  const isOff = listener === 'OFFLINE' || provisioningStatus === 'PENDING_CREATE';
  return { operating_status: isOff ? 'OFFLINE' : 'ONLINE', provisioning_status: provisioningStatus };
}
