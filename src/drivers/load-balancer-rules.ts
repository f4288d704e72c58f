/**
 * Pure: which settings of listeners, pools, members and health monitors are valid together. The API checks requests with
 * these rules, and the drivers check again before they touch the host, because specs are read back from disk.
 *
 * Invariant: a load balancer without violations can be rendered; `haproxy/quote.ts` throws at anything else.
 *
 * Every function returns all violations at once. Fields have the names of the API, because clients read the messages.
 */
import { orList } from '../errors/keyword-message.ts';
import type { FieldError } from '../errors/catalogue.ts';
import type { MemberRefusal, MemberRule } from '../platform/member-networks.ts';
import type {
  DesiredListener,
  DesiredMember,
  DesiredMonitor,
  DesiredPersistence,
  DesiredPool,
  ListenerProtocol,
  PoolProtocol,
} from './load-balancer.ts';
import {
  isFreeText,
  isHostName,
  isNetmask,
  isNetwork,
  isPlainAddress,
  isRequestPath,
  isStatusCodes,
  isToken,
} from './load-balancer-text.ts';

/** HAProxy balances requests (`http`) or bytes (`tcp`); nginx balances datagrams (`udp`). */
export type Mode = 'http' | 'tcp' | 'udp';
type ListenerSettings = Omit<DesiredListener, 'id' | 'defaultPoolId' | 'l7Policies'>;
type MemberSettings = Omit<DesiredMember, 'id'>;
type PoolSettings = Omit<DesiredPool, 'id' | 'members'>;

/** The pool protocols that a listener can use. PROMETHEUS listeners answer by themselves. */
const poolProtocols: Record<ListenerProtocol, PoolProtocol[]> = {
  HTTP: ['HTTP', 'HTTPS', 'PROXY', 'PROXYV2'],
  HTTPS: ['HTTPS', 'PROXY', 'PROXYV2', 'TCP'],
  PROMETHEUS: [],
  TCP: ['HTTP', 'HTTPS', 'PROXY', 'PROXYV2', 'TCP'],
  TERMINATED_HTTPS: ['HTTP', 'HTTPS', 'PROXY', 'PROXYV2'],
  UDP: ['UDP'],
};

/** HTTPS listeners pass TLS through, so they balance bytes. */
export function listenerMode(protocol: ListenerProtocol): Mode {
  if (protocol === 'UDP') return 'udp';
  return protocol === 'TCP' || protocol === 'HTTPS' ? 'tcp' : 'http';
}

/** The mode comes from the listeners that use the pool; without one it comes from the pool's own protocol. */
export function poolModes(protocol: PoolProtocol, listeners: ListenerProtocol[]): Mode[] {
  if (listeners.length > 0) return [...new Set(listeners.map(listenerMode))];
  if (protocol === 'UDP') return ['udp'];
  return [protocol === 'HTTP' || protocol === 'HTTPS' ? 'http' : 'tcp'];
}

/** Violations by field of the API, of the listener alone: not of conflicts with other listeners or pools. */
export function listenerViolations(listener: ListenerSettings): FieldError[] {
  const { protocol, certificate, sniCertificates, users } = listener;
  const { violations, report } = collector();
  if (!isPort(listener.port)) report('protocol_port', 'must be between 1 and 65535');
  if (protocol === 'TERMINATED_HTTPS' || protocol === 'PROMETHEUS') {
    if (protocol === 'TERMINATED_HTTPS' && !certificate) report('secret_id', 'is required for TERMINATED_HTTPS');
    else if (!certificate && sniCertificates.length > 0) report('sni_secret_id', 'requires secret_id');
  } else {
    const message = 'is only supported for TERMINATED_HTTPS and PROMETHEUS';
    if (certificate) report('secret_id', message);
    if (sniCertificates.length > 0) report('sni_secret_id', message);
  }
  if (listener.insertXForwarded && protocol !== 'HTTP' && protocol !== 'TERMINATED_HTTPS') {
    report('insert_x_forwarded', 'is only supported for HTTP and TERMINATED_HTTPS');
  }
  if (users.length > 0 && listenerMode(protocol) !== 'http') {
    report('user_list', 'is only supported for HTTP, TERMINATED_HTTPS and PROMETHEUS');
  }
  for (const [i, network] of (listener.allowedNetworks ?? []).entries()) {
    if (!isNetwork(network)) report(`allowed_cidrs.${i}`, 'must be a network such as 10.0.0.0/8');
  }
  return [...violations, ...prefixed('user_list.', userViolations(users))];
}

function userViolations(users: DesiredListener['users']): FieldError[] {
  const { violations, report } = collector();
  const first = firstOf(users.map(({ name }) => name));
  for (const [i, { name, encryptedPassword }] of users.entries()) {
    if (first[i]! < i) report(`${i}.username`, `duplicates user_list.${first[i]}`);
    if (name === '' || !isFreeText(name)) report(`${i}.username`, 'must not be empty or contain control characters');
    const message = hashViolation(encryptedPassword);
    if (message) report(`${i}.encrypted_password`, message);
  }
  return violations;
}

// The methods of Debian's crypt(3), without those that have no bound on their cost.
const hashFormats = [
  /^\$1\$[./0-9A-Za-z]{0,8}\$[./0-9A-Za-z]{22}$/,
  /^\$5\$(rounds=[1-9]\d{3,8}\$)?[./0-9A-Za-z]{0,16}\$[./0-9A-Za-z]{43}$/,
  /^\$6\$(rounds=[1-9]\d{3,8}\$)?[./0-9A-Za-z]{0,16}\$[./0-9A-Za-z]{86}$/,
  /^\$2[abxy]\$\d\d\$[./0-9A-Za-z]{53}$/,
];
/**
 * HAProxy hashes in the thread that carries the traffic of all tenants. These bounds cost 3 ms for a short password and
 * 5 ms for the longest; 5,000 rounds is the default of sha-crypt.
 */
const maxRounds = 5_000;
const bcryptCost = { min: 4, max: 6 };

function hashViolation(hash: string): string | null {
  const rounds = /^\$[56]\$rounds=(\d+)/.exec(hash)?.[1];
  if (Number(rounds ?? 0) > maxRounds) return `must have at most ${maxRounds} rounds`;
  const cost = Number(/^\$2[abxy]\$(\d+)\$/.exec(hash)?.[1] ?? bcryptCost.min);
  if (cost < bcryptCost.min || cost > bcryptCost.max) {
    return `must have a cost between ${bcryptCost.min} and ${bcryptCost.max}`;
  }
  if (hashFormats.some((format) => format.test(hash))) return null;
  return 'must be a crypt(3) hash ($1$, $5$, $6$ or $2b$), as generated by mkpasswd or htpasswd -nB';
}

/** Whether two listeners of one load balancer need the same port. UDP ports are separate from TCP ports. */
export function sharePort(a: Pick<ListenerSettings, 'protocol' | 'port'>, b: typeof a): boolean {
  return a.port === b.port && (a.protocol === 'UDP') === (b.protocol === 'UDP');
}

/** Listeners of one load balancer that need the same port. */
export function portViolations(listeners: Pick<ListenerSettings, 'protocol' | 'port'>[]): FieldError[] {
  return listeners.flatMap((listener, i) => {
    const first = listeners.findIndex((other) => sharePort(other, listener));
    if (first === i) return [];
    const port = `${listener.protocol === 'UDP' ? 'UDP ' : ''}port ${listener.port}`;
    return [{ path: `listeners.${i}.protocol_port`, message: `conflicts with listeners.${first}: both use ${port}` }];
  });
}

/** `listeners` are the protocols of the listeners that use the pool. */
export function poolViolations(
  pool: PoolSettings,
  listeners: ListenerProtocol[],
  loadBalancerAddress: string,
): FieldError[] {
  const { monitor, persistence } = pool;
  return [
    ...protocolViolations(pool, listeners),
    ...(monitor ? prefixed('healthmonitor.', monitorViolations(monitor, pool.protocol)) : []),
    ...(persistence
      ? prefixed('session_persistence.', persistenceViolations(persistence, pool, listeners, loadBalancerAddress))
      : []),
    ...tlsViolations(pool, listeners),
  ];
}

function protocolViolations({ protocol }: PoolSettings, listeners: ListenerProtocol[]): FieldError[] {
  const { violations, report } = collector();
  const unfit = listeners.find((listener) => !poolProtocols[listener].includes(protocol));
  const fit = unfit && poolProtocols[unfit];
  if (fit?.length === 0) report('protocol', `${unfit} listeners cannot have a pool`);
  else if (fit) report('protocol', `must be ${orList(fit)} behind ${unfit} listeners`);
  if (!fit && poolModes(protocol, listeners).length > 1) {
    report('protocol', 'must not be used by listeners that balance requests and by listeners that balance bytes');
  }
  return violations;
}

const requestFields = {
  http_method: 'httpMethod',
  http_version: 'httpVersion',
  url_path: 'urlPath',
  domain_name: 'domainName',
  expected_codes: 'expectedCodes',
} as const;

/** Violations by field of the API; `protocol` is that of the pool. */
export function monitorViolations(monitor: DesiredMonitor, protocol: PoolProtocol): FieldError[] {
  const { type, httpMethod, urlPath, domainName, expectedCodes } = monitor;
  const { violations, report } = collector();
  if (protocol === 'UDP' && type !== 'UDP-CONNECT' && type !== 'PING') {
    report('type', `must be UDP-CONNECT or PING for a UDP pool, not ${type}`);
  }
  if (protocol !== 'UDP' && type === 'UDP-CONNECT') report('type', `UDP-CONNECT requires a UDP pool, not ${protocol}`);
  if (type !== 'HTTP' && type !== 'HTTPS') {
    for (const [field, key] of Object.entries(requestFields)) {
      if (monitor[key] !== null) report(field, `is only supported for monitors of type HTTP and HTTPS, not ${type}`);
    }
    return violations;
  }
  if (httpMethod !== null && !/^[A-Z]{1,16}$/.test(httpMethod)) report('http_method', 'must be an HTTP method');
  if (urlPath !== null && !isRequestPath(urlPath))
    report('url_path', 'must begin with / and have no control characters');
  if (domainName !== null && !isHostName(domainName)) report('domain_name', 'must be a host name');
  if (expectedCodes !== null && !isStatusCodes(expectedCodes)) {
    report('expected_codes', 'must be HTTP statuses and ranges of them, such as 200, 200,204 or 200,300-302');
  }
  return violations;
}

/** The listener, if any, that passes traffic through unread: no cookies can be set, and no TLS added. */
function passThrough(listeners: ListenerProtocol[]): ListenerProtocol | undefined {
  return listeners.find((listener) => listenerMode(listener) === 'tcp');
}

function persistenceViolations(
  { type, cookieName, granularity, timeoutSeconds }: DesiredPersistence,
  { protocol }: PoolSettings,
  listeners: ListenerProtocol[],
  loadBalancerAddress: string,
): FieldError[] {
  const { violations, report } = collector();
  if (protocol !== 'UDP' || type !== 'SOURCE_IP') {
    const message = 'is only supported for SOURCE_IP in UDP pools';
    if (timeoutSeconds !== null) report('persistence_timeout', message);
    if (granularity !== null) report('persistence_granularity', message);
  } else if (granularity !== null && !isNetmask(granularity, loadBalancerAddress)) {
    const ipv6 = loadBalancerAddress.includes(':');
    const mask = ipv6 ? 'a prefix length from 1 to 128' : 'a netmask such as 255.255.255.0';
    report('persistence_granularity', `must be ${mask}`);
  }
  if (type !== 'SOURCE_IP') {
    const listener = passThrough(listeners);
    if (protocol !== 'HTTP' && protocol !== 'HTTPS')
      report('type', `${type} requires an HTTP or HTTPS pool; use SOURCE_IP`);
    else if (listener) {
      report('type', `${type} is not supported behind ${listener} listeners, which do not read HTTP; use SOURCE_IP`);
    }
  }
  if (cookieName === null) {
    if (type === 'APP_COOKIE') report('cookie_name', 'is required for APP_COOKIE');
  } else if (type === 'SOURCE_IP')
    report('cookie_name', 'is only supported for APP_COOKIE and HTTP_COOKIE, not SOURCE_IP');
  else if (!isToken(cookieName))
    report('cookie_name', 'must contain only letters, digits, dots, hyphens and underscores');
  return violations;
}

function tlsViolations(pool: PoolSettings, listeners: ListenerProtocol[]): FieldError[] {
  const { violations, report } = collector();
  const { caBundle, revocationList, clientCertificate } = pool;
  const secrets = { ca_secret_id: caBundle, crl_secret_id: revocationList, secret_id: clientCertificate };
  const listener = passThrough(listeners);
  for (const [field, secret] of Object.entries(secrets)) {
    if (secret === null) continue;
    if (pool.protocol !== 'HTTPS') report(field, `is only supported for HTTPS pools, not ${pool.protocol}`);
    else if (listener) report(field, `is not supported behind ${listener} listeners, which pass TLS through`);
  }
  if (revocationList !== null && caBundle === null) report('crl_secret_id', 'requires ca_secret_id');
  return violations;
}

/** Of one HAProxy backend. */
const maxServers = 4_000;

/** Paths begin with the index of the member. */
export function memberListViolations(members: MemberSettings[], pool: PoolSettings): FieldError[] {
  const first = firstOf(members.map(({ address, port }) => `${address} ${port}`));
  const violations = members.flatMap((member, i) => [
    ...(first[i]! < i ? [{ path: `${i}`, message: `has the same address and port as members.${first[i]}` }] : []),
    ...prefixed(`${i}.`, memberViolations(member, pool)),
  ]);
  if (pool.protocol === 'UDP' || members.length <= maxServers) return violations;
  return [...violations, { path: `${maxServers}`, message: `exceeds the limit of ${maxServers} members` }];
}

/** Violations by field of the API. Where a member may be: `placementViolations`. */
export function memberViolations(member: MemberSettings, pool: PoolSettings): FieldError[] {
  const { address, port, weight, monitorAddress, monitorPort } = member;
  const { violations, report } = collector();
  if (!isPlainAddress(address)) report('address', 'must be an IP address');
  if (!isPort(port)) report('protocol_port', 'must be between 1 and 65535');
  if (monitorAddress !== null && !isPlainAddress(monitorAddress)) report('monitor_address', 'must be an IP address');
  if (monitorPort !== null && !isPort(monitorPort)) report('monitor_port', 'must be between 1 and 65535');
  if (!(Number.isInteger(weight) && weight >= 0 && weight <= 256)) report('weight', 'must be between 0 and 256');
  // nginx refuses backup servers in an upstream with a hash.
  if (member.backup && pool.protocol === 'UDP' && (pool.algorithm === 'SOURCE_IP' || pool.persistence)) {
    report('backup', 'backup members are not supported in a UDP pool balanced by SOURCE_IP');
  }
  return violations;
}

/** Where the load balancer must not connect to, for traffic or for health checks. */
export function placementViolations(member: MemberSettings, rule: MemberRule): FieldError[] {
  const { address, port, monitorAddress, monitorPort } = member;
  const violation = (refusal: MemberRefusal | null, fields: Record<MemberRefusal['field'], string>): FieldError[] =>
    refusal ? [{ path: fields[refusal.field], message: refusal.message }] : [];
  const violations = violation(rule(address, port), { address: 'address', port: 'protocol_port' });
  if (monitorAddress === null && monitorPort === null) return violations;
  const refusal = rule(monitorAddress ?? address, monitorPort ?? port);
  // Without a monitor_address the checks go to the address of the member, which is already reported.
  if (monitorAddress === null && refusal?.field === 'address') return violations;
  const portField = monitorPort === null ? 'monitor_address' : 'monitor_port';
  return [...violations, ...violation(refusal, { address: 'monitor_address', port: portField })];
}

/** The violations of a part, with paths from the whole: `listeners.0.` and `protocol_port`. */
export function prefixed(prefix: string, violations: FieldError[]): FieldError[] {
  return violations.map(({ path, message }) => ({ path: `${prefix}${path}`, message }));
}

/** `violations` has what was reported. */
export function collector() {
  const violations: FieldError[] = [];
  return { violations, report: (path: string, message: string) => void violations.push({ path, message }) };
}

/** For every item the index of the first equal one. */
function firstOf(items: string[]): number[] {
  const first = new Map<string, number>();
  return items.map((item, i) => {
    if (!first.has(item)) first.set(item, i);
    return first.get(item)!;
  });
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535;
}
