/**
 * Pure: which members of a load balancer get traffic and checks. A member may have been accepted before the rules became
 * stricter, or before the host got its address; it is omitted, so that the other members are still served. Addresses of
 * load balancers are never allowed: a member could bypass the allowed networks of one, or form a loop.
 */
import type { MemberRule } from '../../platform/member-networks.ts';
import { canonicalAddress } from '../../platform/network-address.ts';
import { DriverError } from '../driver.ts';
import { placementViolations } from '../load-balancer-rules.ts';
import type { DesiredMember } from '../load-balancer.ts';
import type { Spec } from './specs.ts';

export interface Admission {
  /** Without the omitted members; the only input of HAProxy, nginx and the probes. */
  served: Spec;
  /** The reasons by the ids of omitted members. */
  refused: Map<string, string>;
}

/** `vips` are the addresses of all load balancers of the host, in canonical spelling. */
export function admit(spec: Spec, rule: MemberRule, vips: ReadonlySet<string>): Admission {
  const refused = new Map<string, string>();
  for (const { members } of spec.pools) {
    for (const member of members) {
      const reason = refusalOf(member, rule, vips);
      if (reason !== undefined) refused.set(member.id, `member ${member.address} port ${member.port}: ${reason}`);
    }
  }
  if (refused.size === 0) return { served: spec, refused };
  const pools = spec.pools.map((pool) => ({ ...pool, members: pool.members.filter(({ id }) => !refused.has(id)) }));
  return { served: { ...spec, pools }, refused };
}

function refusalOf(member: DesiredMember, rule: MemberRule, vips: ReadonlySet<string>): string | undefined {
  const withVips: MemberRule = (address, port) =>
    vips.has(canonicalAddress(address))
      ? { field: 'address', message: `${address} is a load balancer; a load balancer cannot be a member` }
      : rule(address, port);
  return placementViolations(member, withVips)[0]?.message;
}

/** The number of members that an error message names. */
const MAX_NAMED = 5;

/** @throws DriverError that names omitted members of `spec` which were not in `before` */
export function rejectNew(spec: Spec, { refused }: Admission, before: Spec | undefined): void {
  const known = new Set(before && membersOf(before).map(endpointsKey));
  const added = membersOf(spec).filter((member) => refused.has(member.id) && !known.has(endpointsKey(member)));
  if (added.length === 0) return;
  const named = added.slice(0, MAX_NAMED).map(({ id }) => refused.get(id));
  const rest = added.length > MAX_NAMED ? [`${added.length - MAX_NAMED} more`] : [];
  const why = [...named, ...rest].join('; ');
  throw new DriverError(`members are omitted: ${why}`, { customerMessage: why, retryable: false });
}

function membersOf({ pools }: Spec): DesiredMember[] {
  return pools.flatMap(({ members }) => members);
}

function endpointsKey({ id, address, port, monitorAddress, monitorPort }: DesiredMember): string {
  return [id, address, port, monitorAddress, monitorPort].join(' ');
}
