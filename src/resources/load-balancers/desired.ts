/** Pure: what a host should have, given the rows; and how the statuses of parts roll up, given what the proxy sees. */
import type {
  DesiredCertificate,
  DesiredListener,
  DesiredLoadBalancer,
  DesiredMonitor,
  DesiredPool,
  LoadBalancerReading,
  MemberHealth,
} from '../../drivers/load-balancer.ts';
import type { HealthMonitor, OperatingStatus } from './pools/schema.ts';
import type { ListenerRow, MemberRow, PoolRow, StatusChanges, WholeLoadBalancer } from './store.ts';

/** PEM texts by the ids of their secrets. */
export type Pems = Map<string, string>;

/** The secrets that a load balancer's listeners and pools refer to. */
export function secretsOf({ listeners, pools }: WholeLoadBalancer): string[] {
  const ids = [
    ...listeners.flatMap((listener) => [listener.secretId, ...listener.sniSecretIds]),
    ...pools.flatMap((pool) => [pool.secretId, pool.caSecretId, pool.crlSecretId]),
  ];
  return [...new Set(ids.filter((id) => id !== null))];
}

export function desiredLoadBalancer(whole: WholeLoadBalancer, pems: Pems): DesiredLoadBalancer {
  const { loadBalancer, members } = whole;
  const pools = whole.pools.filter((pool) => !pool.deletedAt);
  const living = new Set(pools.map((pool) => pool.id));
  const membersOf = Map.groupBy(members, (member) => member.poolId);
  return {
    id: loadBalancer.id,
    tenant: String(loadBalancer.clientId),
    regionId: loadBalancer.regionId,
    address: loadBalancer.vipAddress,
    enabled: loadBalancer.adminStateUp,
    listeners: whole.listeners
      .filter((listener) => !listener.deletedAt)
      .map((listener) => desiredListener(listener, pems, living)),
    pools: pools.map((pool) => desiredPool(pool, membersOf.get(pool.id) ?? [], pems)),
  };
}

function desiredListener(listener: ListenerRow, pems: Pems, living: Set<string>): DesiredListener {
  return {
    id: listener.id,
    protocol: listener.protocol,
    port: listener.protocolPort,
    enabled: listener.adminStateUp,
    connectionLimit: listener.connectionLimit === -1 ? null : listener.connectionLimit,
    allowedNetworks: listener.allowedCidrs,
    insertXForwarded: listener.insertXForwarded,
    certificate: certificate(listener.secretId, pems),
    sniCertificates: listener.sniSecretIds.map((id) => certificate(id, pems)!),
    users: listener.userList.map((user) => ({ name: user.username, encryptedPassword: user.encrypted_password })),
    timeoutClientData: given(listener.timeoutClientData),
    timeoutMemberConnect: given(listener.timeoutMemberConnect),
    timeoutMemberData: given(listener.timeoutMemberData),
    defaultPoolId: listener.defaultPoolId && living.has(listener.defaultPoolId) ? listener.defaultPoolId : null,
  };
}

function desiredPool(pool: PoolRow, members: MemberRow[], pems: Pems): DesiredPool {
  const persistence = pool.sessionPersistence;
  return {
    id: pool.id,
    protocol: pool.protocol,
    algorithm: pool.lbAlgorithm,
    enabled: pool.adminStateUp,
    members: members.map((member) => ({
      id: member.id,
      address: member.address,
      port: member.protocolPort,
      weight: member.weight,
      backup: member.backup,
      enabled: member.adminStateUp,
      monitorAddress: member.monitorAddress,
      monitorPort: member.monitorPort,
    })),
    monitor: pool.healthMonitor && desiredMonitor(pool.healthMonitor),
    persistence: persistence && {
      type: persistence.type,
      cookieName: persistence.cookie_name,
      timeoutSeconds: persistence.persistence_timeout,
      granularity: persistence.persistence_granularity,
    },
    caBundle: pool.caSecretId === null ? null : pems.get(pool.caSecretId)!,
    revocationList: pool.crlSecretId === null ? null : pems.get(pool.crlSecretId)!,
    clientCertificate: certificate(pool.secretId, pems),
    timeoutClientData: given(pool.timeoutClientData),
    timeoutMemberConnect: given(pool.timeoutMemberConnect),
    timeoutMemberData: given(pool.timeoutMemberData),
  };
}

/** The interface counts seconds, drivers milliseconds. A monitor of K8S is one of HTTP: no nodes of Kubernetes are known. */
function desiredMonitor(monitor: HealthMonitor): DesiredMonitor {
  return {
    type: monitor.type === 'K8S' ? 'HTTP' : monitor.type,
    enabled: monitor.admin_state_up,
    delay: monitor.delay * 1000,
    timeout: monitor.timeout * 1000,
    maxRetries: monitor.max_retries,
    maxRetriesDown: monitor.max_retries_down,
    httpMethod: monitor.http_method,
    httpVersion: monitor.http_version,
    urlPath: monitor.url_path,
    domainName: monitor.domain_name,
    expectedCodes: monitor.expected_codes,
  };
}

function certificate(secretId: string | null, pems: Pems): DesiredCertificate | null {
  return secretId === null ? null : { id: secretId, pem: pems.get(secretId)! };
}

/** The Terraform provider writes 0 for a timeout that was not set. */
function given(timeout: number | null): number | null {
  return timeout === 0 ? null : timeout;
}

const healths: Record<MemberHealth, OperatingStatus> = {
  UP: 'ONLINE',
  DOWN: 'ERROR',
  DRAIN: 'DRAINING',
  MAINT: 'OFFLINE',
  UNCHECKED: 'NO_MONITOR',
};

/**
 * The operating statuses that differ from the rows. A member is what the proxy says of it; a pool is ERROR when no
 * member that should work does, DEGRADED when some do not; a listener and a load balancer are the worst of what they
 * hold. What is switched off, or not on the host, is OFFLINE.
 */
export function statusChanges(whole: WholeLoadBalancer, reading: LoadBalancerReading | undefined): StatusChanges {
  const changes: StatusChanges = {
    loadBalancers: new Map(),
    listeners: new Map(),
    pools: new Map(),
    members: new Map(),
  };
  const { loadBalancer } = whole;
  const off = !loadBalancer.adminStateUp || !reading;
  const membersOf = Map.groupBy(whole.members, (member) => member.poolId);
  const poolStatus = new Map<string, OperatingStatus>();

  for (const pool of whole.pools) {
    const statuses = (membersOf.get(pool.id) ?? []).map((member) => {
      const health = reading?.members.get(member.id);
      const status = off || !pool.adminStateUp || !member.adminStateUp || !health ? 'OFFLINE' : healths[health];
      if (status !== member.operatingStatus) changes.members.set(member.id, status);
      return status;
    });
    const status = off || !pool.adminStateUp ? 'OFFLINE' : rollUpMembers(statuses);
    poolStatus.set(pool.id, status);
    if (status !== pool.operatingStatus) changes.pools.set(pool.id, status);
  }
  const listenerStatuses = whole.listeners.map((listener) => {
    const listens = !off && listener.adminStateUp && reading.listeners.has(listener.id);
    const pool = listener.defaultPoolId === null ? 'ONLINE' : (poolStatus.get(listener.defaultPoolId) ?? 'ONLINE');
    const status = listens ? rollUpParts([pool]) : 'OFFLINE';
    if (status !== listener.operatingStatus) changes.listeners.set(listener.id, status);
    return status;
  });
  const status = off ? 'OFFLINE' : rollUpParts([...listenerStatuses, ...poolStatus.values()]);
  if (status !== loadBalancer.operatingStatus) changes.loadBalancers.set(loadBalancer.id, status);
  return changes;
}

/** Members that are switched off do not count; a pool with none that counts is ONLINE, as it does what it was told. */
function rollUpMembers(statuses: OperatingStatus[]): OperatingStatus {
  const counting = statuses.filter((status) => status !== 'OFFLINE');
  if (counting.length === 0) return statuses.length === 0 ? 'ONLINE' : 'OFFLINE';
  if (counting.every((status) => status === 'ERROR')) return 'ERROR';
  if (counting.includes('ERROR')) return 'DEGRADED';
  if (counting.every((status) => status === 'NO_MONITOR')) return 'NO_MONITOR';
  if (counting.every((status) => status === 'DRAINING')) return 'DRAINING';
  return 'ONLINE';
}

function rollUpParts(statuses: OperatingStatus[]): OperatingStatus {
  const counting = statuses.filter((status) => status !== 'OFFLINE');
  if (counting.length > 0 && counting.every((status) => status === 'ERROR')) return 'ERROR';
  if (counting.includes('ERROR') || counting.includes('DEGRADED')) return 'DEGRADED';
  return statuses.length > 0 && counting.length === 0 ? 'OFFLINE' : 'ONLINE';
}
