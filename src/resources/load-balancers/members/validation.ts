/** Pure: the rules of members (`drivers/load-balancer-rules.ts`) applied to requests. */
import {
  memberListViolations,
  memberViolations,
  placementViolations,
  prefixed,
} from '../../../drivers/load-balancer-rules.ts';
import type { FieldError } from '../../../errors/catalogue.ts';
import type { MemberRule } from '../../../platform/member-networks.ts';
import { desiredMember, desiredPool, withoutPem } from '../desired.ts';
import type { PoolSettings } from '../pools/normalize.ts';
import type { SubnetReference } from '../references.ts';
import type { MemberSettings } from './normalize.ts';

/**
 * `prefix`: of the paths of members in the request, such as `members.`. Without a rule their addresses are not checked: they were
 * accepted before, and only the pool changes.
 */
export function memberListErrors(
  members: MemberSettings[],
  pool: PoolSettings,
  prefix: string,
  rule: MemberRule | null,
): FieldError[] {
  const desired = members.map(desiredMember);
  const misplaced = desired.flatMap((member, i) => (rule ? prefixed(`${i}.`, placementViolations(member, rule)) : []));
  return prefixed(prefix, [...memberListViolations(desired, desiredPool(pool, withoutPem)), ...misplaced]);
}

export function memberErrors(member: MemberSettings, pool: PoolSettings): FieldError[] {
  return memberViolations(desiredMember(member), desiredPool(pool, withoutPem));
}

export function placementErrors(member: MemberSettings, rule: MemberRule): FieldError[] {
  return placementViolations(desiredMember(member), rule);
}

/** The subnets that members name and no member named `before`. `prefix`: as above. */
export function memberSubnets(members: MemberSettings[], before: MemberSettings[], prefix: string): SubnetReference[] {
  const known = new Set(before.map((member) => member.subnetId));
  return members.flatMap(({ subnetId }, i) =>
    subnetId === null || known.has(subnetId) ? [] : [{ id: subnetId, path: `${prefix}${i}.subnet_id` }],
  );
}
