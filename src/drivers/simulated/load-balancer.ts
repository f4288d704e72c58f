/**
 * Simulated load balancers: the results of the real driver, without touching the host. Members in allowed networks are
 * reported as healthy.
 */
import { isDeepStrictEqual } from 'node:util';
import { refuseAborted } from '../command.ts';
import type { Simulation } from '../kind.ts';
import { simulatedLifecycle, simulatedRemovals } from './lifecycle.ts';
import type { MemberRules } from '../../platform/member-networks.ts';
import { type Admission, admit, rejectNew } from '../haproxy/admission.ts';
import { portConflict } from '../haproxy/errors.ts';
import { requireValid } from '../haproxy/validation.ts';
import {
  addressesOf,
  type DesiredLoadBalancer,
  type DesiredPool,
  type LoadBalancerDriver,
  type LoadBalancerReading,
  type MemberHealth,
  zeroCounters,
} from '../load-balancer.ts';

/** `memberRules`: the networks that members can be in; default: all. */
export function createSimulatedLoadBalancerDriver({
  memberRules = () => () => null,
  ...why
}: { memberRules?: MemberRules } & Simulation = {}): LoadBalancerDriver {
  const balancers = new Map<string, DesiredLoadBalancer>();
  const refusedOf = new WeakMap<DesiredLoadBalancer, Admission['refused']>();
  /** `balancer`: one of `balancers`. */
  const admitOne = (balancer: DesiredLoadBalancer): Admission => {
    const vips = new Set([...balancers.values()].flatMap(addressesOf));
    const admission = admit(balancer, memberRules(balancer.regionId), vips);
    refusedOf.set(balancer, admission.refused);
    return admission;
  };
  const counts = { reloads: 0, runtimeChanges: 0 };
  return {
    ...simulatedRemovals(balancers),
    ...simulatedLifecycle('simulated: load balancers can be managed but not connected to', why),
    async apply(desired, signal) {
      refuseAborted(signal);
      requireValid(desired);
      refuseTaken(desired, balancers.values());
      const before = balancers.get(desired.id);
      const after = structuredClone(desired);
      balancers.set(desired.id, after);
      if (!before || !isDeepStrictEqual(settingsOf(before), settingsOf(after))) counts.reloads += 1;
      if (before) counts.runtimeChanges += changedMembers(before, after);
      rejectNew(after, admitOne(after), before);
    },
    read: async () => [...balancers.values()].map((balancer) => readingOf(balancer, refusedOf.get(balancer))),
    async recheckMembers() {
      for (const balancer of balancers.values()) admitOne(balancer);
    },
    counters: () => ({ ...counts }),
  };
}

/** What the real driver changes by a reload: all except the members. */
function settingsOf(balancer: DesiredLoadBalancer): DesiredLoadBalancer {
  return { ...balancer, pools: balancer.pools.map((pool) => ({ ...pool, members: [] })) };
}

/** How many members were added, removed or changed. */
function changedMembers(before: DesiredLoadBalancer, after: DesiredLoadBalancer): number {
  const old = membersOf(before);
  const current = membersOf(after);
  const ids = new Set([...old.keys(), ...current.keys()]);
  return [...ids].filter((id) => !isDeepStrictEqual(old.get(id), current.get(id))).length;
}

function membersOf({ pools }: DesiredLoadBalancer) {
  return new Map(pools.flatMap(({ members }) => members.map((member) => [member.id, member])));
}

function refuseTaken(desired: DesiredLoadBalancer, all: Iterable<DesiredLoadBalancer>): void {
  const own = new Set(portsOf(desired));
  for (const other of all) {
    const taken = other.id === desired.id ? undefined : portsOf(other).find((each) => own.has(each));
    if (!taken) continue;
    throw portConflict(other.id, taken);
  }
}

function portsOf(desired: DesiredLoadBalancer): string[] {
  const open = desired.enabled ? desired.listeners.filter((each) => each.enabled) : [];
  return addressesOf(desired).flatMap((address) =>
    open.map(({ port, protocol }) => `${address} ${port}${protocol === 'UDP' ? ' UDP' : ''}`),
  );
}

function readingOf(balancer: DesiredLoadBalancer, refused: Admission['refused'] | undefined): LoadBalancerReading {
  const open = balancer.enabled ? balancer.listeners.filter(({ enabled }) => enabled) : [];
  const members = balancer.pools.flatMap((pool) =>
    pool.members.map((member): [string, MemberHealth] => {
      const health = healthOf(balancer, pool, member);
      return [member.id, health !== 'MAINT' && refused?.has(member.id) ? 'DOWN' : health];
    }),
  );
  return {
    id: balancer.id,
    members: new Map(members),
    listeners: new Map(open.map(({ id }) => [id, { ...zeroCounters }])),
  };
}

function healthOf(
  balancer: DesiredLoadBalancer,
  pool: DesiredPool,
  member: DesiredPool['members'][number],
): MemberHealth {
  if (!balancer.enabled || !pool.enabled || !member.enabled) return 'MAINT';
  if (member.weight === 0) return 'DRAIN';
  return pool.monitor?.enabled ? 'UP' : 'UNCHECKED';
}
