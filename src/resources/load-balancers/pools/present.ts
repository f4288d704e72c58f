/** Pure: pools as the interface shows them. */
import type { HealthMonitor, LbPool, LbPoolCollection, ListMembers, Member, MemberCollection } from './schema.ts';
import type { PoolRow, PoolView, ShownMember } from './store.ts';

export function present(pool: PoolView): LbPool {
  return { ...withoutMembers(pool), members: pool.members.map((member) => detailed(member, pool)) };
}

export function presentListed(pool: PoolView<ShownMember | { id: string }>): LbPoolCollection['results'][number] {
  const members = pool.members.map((member) => ('address' in member ? detailed(member, pool) : member));
  return { ...withoutMembers(pool), members };
}

/** In the order in which the pool has them, they are as they came. */
export function presentMembers(
  members: Member[],
  { order_by = 'address.asc', limit = 1000, offset = 0 }: ListMembers,
): MemberCollection {
  const [field, direction] = order_by.split('.');
  const byAddress = (a: Member, b: Member) =>
    a.address < b.address ? -1 : a.address > b.address ? 1 : a.protocol_port - b.protocol_port;
  const sorted = field === 'address' ? members.toSorted(byAddress) : [...members];
  if (direction === 'desc') sorted.reverse();
  return { count: members.length, results: sorted.slice(offset, offset + limit) };
}

/** Members and monitors are put in place with their pool. */
function detailed(member: ShownMember, pool: PoolRow) {
  return { ...member, provisioning_status: pool.provisioningStatus };
}

function withoutMembers(pool: PoolView<unknown>): Omit<LbPool, 'members'> {
  return {
    id: pool.id,
    name: pool.name,
    admin_state_up: pool.adminStateUp,
    ca_secret_id: pool.caSecretId,
    creator_task_id: pool.creatorTaskId,
    crl_secret_id: pool.crlSecretId,
    healthmonitor: pool.healthMonitor && presentMonitor(pool.healthMonitor, pool),
    lb_algorithm: pool.lbAlgorithm,
    listeners: pool.listenerIds.map((id) => ({ id })),
    loadbalancers: [{ id: pool.loadBalancerId }],
    operating_status: pool.operatingStatus,
    protocol: pool.protocol,
    provisioning_status: pool.provisioningStatus,
    secret_id: pool.secretId,
    session_persistence: pool.sessionPersistence,
    task_id: pool.taskId,
    timeout_client_data: pool.timeoutClientData,
    timeout_member_connect: pool.timeoutMemberConnect,
    timeout_member_data: pool.timeoutMemberData,
  };
}

function presentMonitor(monitor: HealthMonitor, pool: PoolRow) {
  return {
    ...monitor,
    operating_status: monitor.admin_state_up ? ('ONLINE' as const) : ('OFFLINE' as const),
    provisioning_status: pool.provisioningStatus,
  };
}
