/** Pure: the desired state of a host, from rows. */
import type {
  DesiredCertificate,
  DesiredL7Policy,
  DesiredL7Rule,
  DesiredListener,
  DesiredLoadBalancer,
  DesiredMember,
  DesiredMonitor,
  DesiredPool,
} from '../../drivers/load-balancer.ts';
import type { L7PolicySettings } from './l7-policies/normalize.ts';
import type { L7RuleSettings } from './l7-policies/rules/normalize.ts';
import type { ListenerSettings } from './listeners/normalize.ts';
import type { MemberSettings } from './members/normalize.ts';
import type { Timeouts } from './patch.ts';
import type { PoolSettings } from './pools/normalize.ts';
import type { HealthMonitor } from './pools/schema.ts';
import type { WholeLoadBalancer } from './store.ts';

/** PEM texts by the ids of their secrets. */
export type Pems = Map<string, string>;
type PemOf = (secretId: string) => string;
/** For checks of settings, which need no secrets. */
export const withoutPem: PemOf = () => '';

/** The secrets that the listeners and pools of a load balancer use. */
export function secretsOf({ listeners, pools }: WholeLoadBalancer): string[] {
  const ids = [
    ...listeners.flatMap((listener) => [listener.secretId, ...listener.sniSecretIds]),
    ...pools.flatMap((pool) => [pool.secretId, pool.caSecretId, pool.crlSecretId]),
  ];
  return [...new Set(ids.filter((id) => id !== null))];
}

export function desiredLoadBalancer(whole: WholeLoadBalancer, pems: Pems): DesiredLoadBalancer {
  const { loadBalancer } = whole;
  const pools = whole.pools.filter((pool) => !pool.deletedAt);
  const poolIds = new Set(pools.map((pool) => pool.id));
  const membersOf = Map.groupBy(whole.members, (member) => member.poolId);
  const rulesOf = Map.groupBy(
    whole.l7Rules.filter((rule) => !rule.deletedAt),
    (rule) => rule.policyId,
  );
  const policiesOf = Map.groupBy(
    whole.l7Policies.filter((policy) => !policy.deletedAt),
    (policy) => policy.listenerId,
  );
  const pemOf: PemOf = (secretId) => pems.get(secretId)!;
  return {
    id: loadBalancer.id,
    tenant: String(loadBalancer.clientId),
    regionId: loadBalancer.regionId,
    address: loadBalancer.vipAddress,
    ...(loadBalancer.vipIpFamily === 'dual' && { additionalAddresses: [loadBalancer.vipAddressV6!] }),
    enabled: loadBalancer.adminStateUp,
    listeners: whole.listeners
      .filter((listener) => !listener.deletedAt)
      .map((listener) => ({
        id: listener.id,
        ...desiredListener(listener, pemOf),
        defaultPoolId: listener.defaultPoolId && poolIds.has(listener.defaultPoolId) ? listener.defaultPoolId : null,
        l7Policies: (policiesOf.get(listener.id) ?? []).map((policy) => ({
          id: policy.id,
          ...desiredL7Policy(policy),
          rules: (rulesOf.get(policy.id) ?? []).map((rule) => ({ id: rule.id, ...desiredL7Rule(rule) })),
        })),
      })),
    pools: pools.map((pool) => ({
      id: pool.id,
      ...desiredPool(pool, pemOf),
      members: (membersOf.get(pool.id) ?? []).map((member) => ({ id: member.id, ...desiredMember(member) })),
    })),
  };
}

export function desiredListener(
  listener: ListenerSettings,
  pemOf: PemOf,
): Omit<DesiredListener, 'id' | 'defaultPoolId' | 'l7Policies'> {
  return {
    protocol: listener.protocol,
    port: listener.protocolPort,
    enabled: listener.adminStateUp,
    connectionLimit: listener.connectionLimit,
    allowedNetworks: listener.allowedCidrs,
    insertXForwarded: listener.insertXForwarded,
    certificate: certificate(listener.secretId, pemOf),
    sniCertificates: listener.sniSecretIds.map((id) => ({ id, pem: pemOf(id) })),
    users: listener.userList.map((user) => ({ name: user.username, encryptedPassword: user.encrypted_password })),
    ...timeouts(listener),
  };
}

export function desiredL7Policy(policy: L7PolicySettings): Omit<DesiredL7Policy, 'id' | 'rules'> {
  const { action, redirectUrl, redirectPrefix, redirectPoolId, redirectHttpCode } = policy;
  return { action, redirectUrl, redirectPrefix, redirectPoolId, redirectHttpCode };
}

export function desiredL7Rule({ type, compareType, key, value, invert }: L7RuleSettings): Omit<DesiredL7Rule, 'id'> {
  return { type, compareType, key, value, invert };
}

export function desiredPool(pool: PoolSettings, pemOf: PemOf): Omit<DesiredPool, 'id' | 'members'> {
  const persistence = pool.sessionPersistence;
  return {
    protocol: pool.protocol,
    algorithm: pool.lbAlgorithm,
    enabled: pool.adminStateUp,
    monitor: pool.healthMonitor && desiredMonitor(pool.healthMonitor),
    persistence: persistence && {
      type: persistence.type,
      cookieName: persistence.cookie_name,
      timeoutSeconds: persistence.persistence_timeout,
      granularity: persistence.persistence_granularity,
    },
    caBundle: pool.caSecretId === null ? null : pemOf(pool.caSecretId),
    revocationList: pool.crlSecretId === null ? null : pemOf(pool.crlSecretId),
    clientCertificate: certificate(pool.secretId, pemOf),
    ...timeouts(pool),
  };
}

export function desiredMember(member: MemberSettings): Omit<DesiredMember, 'id'> {
  return {
    address: member.address,
    port: member.protocolPort,
    weight: member.weight,
    backup: member.backup,
    enabled: member.adminStateUp,
    monitorAddress: member.monitorAddress,
    monitorPort: member.monitorPort,
  };
}

/** The API uses seconds, drivers use milliseconds. K8S monitors work as HTTP: no Kubernetes nodes are known. */
export function desiredMonitor(monitor: HealthMonitor): DesiredMonitor {
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

function certificate(secretId: string | null, pemOf: PemOf): DesiredCertificate | null {
  return secretId === null ? null : { id: secretId, pem: pemOf(secretId) };
}

/** 0 means the default: the Terraform provider sends it for a timeout that is not set. */
function timeouts(part: Timeouts) {
  return {
    timeoutClientData: part.timeoutClientData || null,
    timeoutMemberConnect: part.timeoutMemberConnect || null,
    timeoutMemberData: part.timeoutMemberData || null,
  };
}
