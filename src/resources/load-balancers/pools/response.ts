/** Pure: pools as the API returns them. */
import type { PoolRow } from '../table.ts';
import { requestDefaults } from './normalize.ts';
import type { HealthMonitor, LbPool, ListedPool } from './schema.ts';
import type { MemberView, PoolView } from './store.ts';

export function toResponse(pool: PoolView): LbPool {
  return { ...withoutMembers(pool), members: pool.members.map((member) => memberToResponse(member, pool)) };
}

export function listedToResponse(pool: PoolView<MemberView | { id: string }>): ListedPool {
  const members = pool.members.map((member) => ('address' in member ? memberToResponse(member, pool) : member));
  return { ...withoutMembers(pool), members };
}

/** Members and monitors are provisioned with their pool. */
function memberToResponse(member: MemberView, pool: PoolRow) {
  return { ...member, provisioning_status: pool.provisioningStatus };
}

/** Clients expect the values that checks use, and null for types that send no request. K8S monitors work as HTTP. */
function withDefaults(monitor: HealthMonitor): HealthMonitor {
  if (!['HTTP', 'HTTPS', 'K8S'].includes(monitor.type)) return monitor;
  return {
    ...monitor,
    http_method: monitor.http_method ?? requestDefaults.http_method,
    url_path: monitor.url_path ?? requestDefaults.url_path,
    expected_codes: monitor.expected_codes ?? requestDefaults.expected_codes,
  };
}

function withoutMembers(pool: PoolView<unknown>): Omit<LbPool, 'members'> {
  const monitor = pool.healthMonitor;
  return {
    id: pool.id,
    name: pool.name,
    admin_state_up: pool.adminStateUp,
    ca_secret_id: pool.caSecretId,
    creator_task_id: pool.creatorTaskId,
    crl_secret_id: pool.crlSecretId,
    healthmonitor: monitor && {
      ...withDefaults(monitor),
      operating_status: monitor.admin_state_up ? 'ONLINE' : 'OFFLINE',
      provisioning_status: pool.provisioningStatus,
    },
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
