/**
 * Which members of a load balancer get traffic and checks; pure. Members that may not be where they are, are left out, so
 * that one of them does not take the others down: it may have been accepted before the rules were stricter, or before the
 * host had its address. An address of another load balancer of the host is refused too, whatever the regions file says:
 * it would pass that one's allowed networks, or lead back in a circle.
 */
import type { MemberRule } from '../../platform/member-networks.ts';
import { canonicalAddress } from '../../platform/network-address.ts';
import { DriverError } from '../driver.ts';
import { placementViolations } from '../load-balancer-rules.ts';
import type { DesiredMember } from '../load-balancer.ts';
import type { Spec } from './specs.ts';

export interface Admission {
  /** Without the members that are left out: all that HAProxy, nginx and the probes get to know. */
  served: Spec;
  /** Why members are left out, by their ids. */
  refused: Map<string, string>;
}

/** `vips` are the addresses of all load balancers of the host, in their one spelling. */
export function admit(spec: Spec, rule: MemberRule, vips: ReadonlySet<string>): Admission {
  const refused = new Map<string, string>();
  for (const { members } of spec.pools) {
    for (const member of members) {
      const why = refusalOf(member, rule, vips);
      if (why !== undefined) refused.set(member.id, `member ${member.address} port ${member.port}: ${why}`);
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

const NAMED = 5;

/** Of the members of `spec` that are left out, those that were not asked for before. @throws DriverError naming them */
export function rejectNew(spec: Spec, { refused }: Admission, before: Spec | undefined): void {
  const known = new Set(before && membersOf(before).map(endpointsKey));
  const added = membersOf(spec).filter((member) => refused.has(member.id) && !known.has(endpointsKey(member)));
  if (added.length === 0) return;
  const named = added.slice(0, NAMED).map(({ id }) => refused.get(id));
  const rest = added.length > NAMED ? [`${added.length - NAMED} more`] : [];
  const why = [...named, ...rest].join('; ');
  throw new DriverError(`members are left out: ${why}`, { customerMessage: `${why}.`, retryable: false });
}

function membersOf({ pools }: Spec): DesiredMember[] {
  return pools.flatMap(({ members }) => members);
}

function endpointsKey({ id, address, port, monitorAddress, monitorPort }: DesiredMember): string {
  return [id, address, port, monitorAddress, monitorPort].join(' ');
}
