/** Pure: operating statuses of rows, from what the proxy reports. */
import type { LoadBalancerReading, MemberHealth } from '../../drivers/load-balancer.ts';
import type { OperatingStatus } from './shapes.ts';
import type { StatusChange, WholeLoadBalancer } from './store.ts';

const statusOfHealth: Record<MemberHealth, OperatingStatus> = {
  UP: 'ONLINE',
  DOWN: 'ERROR',
  DRAIN: 'DRAINING',
  MAINT: 'OFFLINE',
  UNCHECKED: 'NO_MONITOR',
};

/**
 * The operating statuses that differ from the rows. A member has the status that the proxy reports; a pool is ERROR when
 * all its active members fail and DEGRADED when some do; a listener and a load balancer have the worst status of their
 * parts. Disabled parts and parts that are not on the host are OFFLINE. New parts keep their first status.
 */
export function statusChanges(whole: WholeLoadBalancer, reading: LoadBalancerReading | undefined): StatusChange[] {
  const changes: StatusChange[] = [];
  const note = (
    table: StatusChange['table'],
    { id, operatingStatus }: { id: string; operatingStatus: OperatingStatus },
    status: OperatingStatus,
  ) => {
    if (status !== operatingStatus) changes.push({ table, id, status });
    return status;
  };
  const { loadBalancer } = whole;
  const isPending = loadBalancer.observedGeneration < loadBalancer.generation;
  if (isPending && loadBalancer.observedGeneration === 0) return changes;
  const off = !loadBalancer.adminStateUp || !reading;
  const membersOf = Map.groupBy(whole.members, (member) => member.poolId);
  const poolStatus = new Map<string, OperatingStatus>();

  for (const pool of whole.pools) {
    const poolOff = off || !pool.adminStateUp;
    const statuses = (membersOf.get(pool.id) ?? []).map((member) => {
      const health = reading?.members.get(member.id);
      if (poolOff || !member.adminStateUp) return note('lb_members', member, 'OFFLINE');
      if (!health) return note('lb_members', member, isPending ? member.operatingStatus : 'OFFLINE');
      return note('lb_members', member, statusOfHealth[health]);
    });
    poolStatus.set(pool.id, note('lb_pools', pool, poolOff ? 'OFFLINE' : statusOfPool(statuses)));
  }
  const listenerStatuses = whole.listeners.map((listener) => {
    const listens = !off && listener.adminStateUp && reading.listeners.has(listener.id);
    const pool = listener.defaultPoolId === null ? 'ONLINE' : (poolStatus.get(listener.defaultPoolId) ?? 'ONLINE');
    return note('lb_listeners', listener, listens ? worstOf([pool]) : 'OFFLINE');
  });
  note('load_balancers', loadBalancer, off ? 'OFFLINE' : worstOf([...listenerStatuses, ...poolStatus.values()]));
  return changes;
}

/** Disabled members do not count. An empty pool is ONLINE: nothing in it fails. */
function statusOfPool(members: OperatingStatus[]): OperatingStatus {
  const active = members.filter((status) => status !== 'OFFLINE');
  if (active.length === 0) return members.length === 0 ? 'ONLINE' : 'OFFLINE';
  if (active.every((status) => status === 'ERROR')) return 'ERROR';
  if (active.includes('ERROR')) return 'DEGRADED';
  if (active.every((status) => status === 'NO_MONITOR')) return 'NO_MONITOR';
  if (active.every((status) => status === 'DRAINING')) return 'DRAINING';
  return 'ONLINE';
}

function worstOf(parts: OperatingStatus[]): OperatingStatus {
  const active = parts.filter((status) => status !== 'OFFLINE');
  if (active.length > 0 && active.every((status) => status === 'ERROR')) return 'ERROR';
  if (active.includes('ERROR') || active.includes('DEGRADED')) return 'DEGRADED';
  return parts.length > 0 && active.length === 0 ? 'OFFLINE' : 'ONLINE';
}
