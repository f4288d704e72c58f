/** Pure: what of a pool makes no sense. Everything that is wrong is told at once, each with the path where it stands. */
import ipaddr from 'ipaddr.js';
import type { ListenerProtocol, PoolProtocol } from '../../../drivers/load-balancer.ts';
import type { FieldError } from '../../../errors/catalogue.ts';
import type { MemberRefusal, MemberRule } from '../../../platform/member-networks.ts';
import { isAddress } from '../../../platform/network-address.ts';
import { endpointOf } from '../members/replace-members.ts';
import type { HealthMonitor, SessionPersistence, UpdatePool } from './schema.ts';
import type { MemberSettings, PoolSettings } from './settings.ts';

/** What a listener can hand its traffic to. PROMETHEUS answers by itself. */
const poolsOf: Record<ListenerProtocol, PoolProtocol[]> = {
  HTTP: ['HTTP', 'HTTPS', 'PROXY', 'PROXYV2'],
  HTTPS: ['HTTPS', 'PROXY', 'PROXYV2', 'TCP'],
  PROMETHEUS: [],
  TCP: ['HTTP', 'HTTPS', 'PROXY', 'PROXYV2', 'TCP'],
  TERMINATED_HTTPS: ['HTTP', 'HTTPS', 'PROXY', 'PROXYV2'],
  UDP: ['UDP'],
};

/** `listeners` are the protocols of those that the pool serves; `path` is what stands before the pool's own fields. */
export function settingFaults(pool: PoolSettings, listeners: ListenerProtocol[], path: string): FieldError[] {
  return [
    ...fitFaults(pool, listeners, path),
    ...(pool.healthMonitor ? monitorFaults(pool.healthMonitor, pool.protocol, `${path}healthmonitor.`) : []),
    ...(pool.sessionPersistence
      ? persistenceFaults(pool.sessionPersistence, pool, listeners, `${path}session_persistence.`)
      : []),
    ...encryptionFaults(pool, listeners, path),
  ];
}

function fitFaults(pool: PoolSettings, listeners: ListenerProtocol[], path: string): FieldError[] {
  const unfit = listeners.find((listener) => !poolsOf[listener].includes(pool.protocol));
  if (unfit === undefined) return [];
  const fit = poolsOf[unfit].join(', ');
  const message = fit
    ? `a listener of protocol ${unfit} takes pools of ${fit}, and this is ${pool.protocol}`
    : `a listener of protocol ${unfit} takes no pools`;
  return [{ path: `${path}protocol`, message }];
}

const httpMonitors = ['HTTP', 'HTTPS', 'K8S'];
const datagramMonitors = ['PING', 'UDP-CONNECT'];
const httpFields = ['http_method', 'http_version', 'url_path', 'domain_name', 'expected_codes'] as const;
const codes = /^[1-5]\d\d(,[1-5]\d\d)*$/;
const codeRange = /^([1-5]\d\d)-([1-5]\d\d)$/;
const visible = /^[\x21-\x7e]*$/;

export function monitorFaults(monitor: HealthMonitor, protocol: PoolProtocol, path: string): FieldError[] {
  const faults: FieldError[] = [];
  const note = (field: keyof HealthMonitor, message: string) => faults.push({ path: `${path}${field}`, message });
  if (protocol === 'UDP' && !datagramMonitors.includes(monitor.type)) {
    note('type', `a monitor of type ${monitor.type} cannot check members of a UDP pool; use UDP-CONNECT or PING`);
  }
  if (protocol !== 'UDP' && monitor.type === 'UDP-CONNECT') {
    note('type', `a monitor of type UDP-CONNECT cannot check members of a ${protocol} pool`);
  }
  if (monitor.timeout > monitor.delay) {
    note('timeout', `must not be above delay, which is ${monitor.delay}: a check ends before the next one starts`);
  }
  if (!httpMonitors.includes(monitor.type)) {
    for (const field of httpFields) {
      if (monitor[field] !== null) note(field, `is for monitors of HTTP and HTTPS, and this is ${monitor.type}`);
    }
    return faults;
  }
  if (monitor.expected_codes !== null && !areCodes(monitor.expected_codes)) {
    note('expected_codes', 'must be an HTTP status (200), a list of them (200,204) or a range (200-299)');
  }
  // The pattern of the schema allows line breaks and spaces, which would end the request line.
  if (monitor.url_path !== null && !visible.test(monitor.url_path)) {
    note('url_path', 'must have visible ASCII characters only');
  }
  return faults;
}

function areCodes(text: string): boolean {
  const [, first, last] = codeRange.exec(text) ?? [];
  return codes.test(text) || (first !== undefined && last !== undefined && first <= last);
}

/** Without a type a patch keeps that of the present monitor, so there has to be one. */
export function missingMonitorType(body: UpdatePool, pool: PoolSettings): FieldError[] {
  if (!body.healthmonitor || body.healthmonitor.type || pool.healthMonitor) return [];
  return [{ path: 'healthmonitor.type', message: 'is required, as the pool has no health monitor whose type to keep' }];
}

/** Cookies and members' certificates are of what the load balancer reads, and not of what it passes through. */
function passedThroughBy(listeners: ListenerProtocol[]): ListenerProtocol | undefined {
  return listeners.find((listener) => listener === 'HTTPS' || listener === 'TCP');
}

function persistenceFaults(
  persistence: SessionPersistence,
  { protocol }: PoolSettings,
  listeners: ListenerProtocol[],
  path: string,
): FieldError[] {
  const faults: FieldError[] = [];
  const note = (field: keyof SessionPersistence, message: string) => faults.push({ path: `${path}${field}`, message });
  const { type, cookie_name, persistence_granularity, persistence_timeout } = persistence;
  const speaksHttp = protocol === 'HTTP' || protocol === 'HTTPS';
  const unread = passedThroughBy(listeners);
  if (type !== 'SOURCE_IP' && (!speaksHttp || unread)) {
    const where = speaksHttp ? ` behind a listener of ${unread}` : '';
    note('type', `${type} needs HTTP, and a ${protocol} pool${where} is passed through unread; use SOURCE_IP`);
  }
  if (type === 'APP_COOKIE' && cookie_name === null) note('cookie_name', 'is required for APP_COOKIE');
  if (type !== 'APP_COOKIE' && cookie_name !== null) note('cookie_name', `is for APP_COOKIE, and this is ${type}`);
  // The pattern of the schema allows spaces, which a cookie name cannot have.
  if (cookie_name?.includes(' ')) note('cookie_name', 'must have no spaces');
  if (persistence_granularity !== null) {
    if (type !== 'SOURCE_IP') note('persistence_granularity', `is for SOURCE_IP, and this is ${type}`);
    if (!isNetmask(persistence_granularity)) note('persistence_granularity', 'must be a netmask such as 255.255.255.0');
  }
  if (persistence_timeout !== null && type !== 'SOURCE_IP') {
    note('persistence_timeout', `is for SOURCE_IP, and this is ${type}`);
  }
  if (protocol === 'UDP') {
    const hashed = 'is not for UDP pools, where the address of a client alone says who serves it';
    if (persistence_timeout !== null) note('persistence_timeout', hashed);
    if (persistence_granularity !== null) note('persistence_granularity', hashed);
  }
  return faults;
}

/** Of IPv4, as the addresses of load balancers are. */
function isNetmask(text: string): boolean {
  return isAddress(text) && !text.includes(':') && (ipaddr.IPv4.parse(text).prefixLengthFromSubnetMask() ?? 0) > 0;
}

function encryptionFaults(pool: PoolSettings, listeners: ListenerProtocol[], path: string): FieldError[] {
  const faults: FieldError[] = [];
  const named = { ca_secret_id: pool.caSecretId, crl_secret_id: pool.crlSecretId, secret_id: pool.secretId };
  const unread = passedThroughBy(listeners);
  const reason =
    pool.protocol !== 'HTTPS'
      ? `is for HTTPS pools, and this is ${pool.protocol}`
      : unread
        ? `is of no use behind a listener of ${unread}, which passes TLS through to the members`
        : null;
  for (const [field, id] of Object.entries(named)) {
    if (id !== null && reason) faults.push({ path: `${path}${field}`, message: reason });
  }
  if (pool.crlSecretId !== null && pool.caSecretId === null) {
    faults.push({ path: `${path}crl_secret_id`, message: 'needs ca_secret_id: without it no certificate is verified' });
  }
  return faults;
}

/** `path` is that of the list: `members`. `rule` null: they are accepted already, and only the pool changes. */
export function memberFaults(
  members: MemberSettings[],
  pool: PoolSettings,
  path: string,
  rule: MemberRule | null,
): FieldError[] {
  const seen = new Map<string, number>();
  return members.flatMap((member, i) => {
    const first = seen.get(endpointOf(member));
    if (first === undefined) seen.set(endpointOf(member), i);
    const again = `${member.address} port ${member.protocolPort} is ${path}.${first} already`;
    return [
      ...(first === undefined ? [] : [{ path: `${path}.${i}`, message: again }]),
      ...backupFaults(member, pool, `${path}.${i}.`),
      ...(rule ? endpointFaults(member, rule, `${path}.${i}.`) : []),
    ];
  });
}

export function backupFaults(member: MemberSettings, pool: PoolSettings, path: string): FieldError[] {
  const byAddress = pool.lbAlgorithm === 'SOURCE_IP' || pool.sessionPersistence !== null;
  if (!member.backup || pool.protocol !== 'UDP' || !byAddress) return [];
  return [{ path: `${path}backup`, message: 'cannot be where UDP goes to members by the address of the client' }];
}

/** Where the load balancer would connect to: for traffic, and for the health monitor. */
export function endpointFaults(member: MemberSettings, rule: MemberRule, path: string): FieldError[] {
  const { address, protocolPort, monitorAddress, monitorPort } = member;
  const faultOf = (refusal: MemberRefusal | null, fields: Record<MemberRefusal['field'], string>): FieldError[] =>
    refusal ? [{ path: `${path}${fields[refusal.field]}`, message: refusal.message }] : [];
  const faults = faultOf(rule(address, protocolPort), { address: 'address', port: 'protocol_port' });
  if (monitorAddress === null && monitorPort === null) return faults;
  const refusal = rule(monitorAddress ?? address, monitorPort ?? protocolPort);
  // Without an address of its own it is at the member's, and that is named already.
  if (monitorAddress === null && refusal?.field === 'address') return faults;
  const port = monitorPort === null ? 'monitor_address' : 'monitor_port';
  return [...faults, ...faultOf(refusal, { address: 'monitor_address', port })];
}
