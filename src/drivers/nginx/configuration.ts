/**
 * Pure: the configuration of nginx for UDP listeners, from specs and the results of the driver's probes. A member that is
 * down, disabled or has weight 0 is a `down` server. The passive checks of nginx are off, so only the health monitor decides.
 *
 * There is one worker, because two would take turns with the datagrams of a client. Source addresses, or their networks, are
 * balanced by a consistent hash, which needs no memory and survives a reload. It also keeps a client on its member for longer
 * than any persistence timeout.
 *
 * Invariant: a flood of the listeners of one tenant leaves sessions for others. Each of n tenants with UDP listeners gets
 * `sessions / (n + 1)`, at least 1/32 of them, and one source address half of that.
 */
import { descriptorLimit } from '../../platform/descriptors.ts';
import { addressesOf, type DesiredListener, type DesiredPool } from '../load-balancer.ts';
import { withHashWeights } from '../haproxy/hash-weights.ts';
import * as quote from '../haproxy/quote.ts';
import type { Spec } from '../haproxy/specs.ts';

export interface NginxSettings {
  /** The folder that nginx writes to. */
  state: string;
  streamModule: string;
  /** The maximum of sessions of all tenants together. */
  sessions: number;
}

const SESSION_MS = 50_000;
const MAX_SESSIONS = 16_384;
/** In addition to those of sessions and listeners. */
const SPARE_CONNECTIONS = 1_024;
const MAX_TENANT_DIVISOR = 32;

/** nginx rejects them if no server sets `$tenant`. */
const ZONES = `  limit_conn_zone $server_addr:$server_port zone=listeners:1m;
  limit_conn_zone $tenant zone=tenants:1m;
  limit_conn_zone $tenant$binary_remote_addr zone=sources:10m;
  limit_conn_log_level info;
  map $status $accepted { 403 0; 503 0; default 1; }
`;

/** A session needs two connections with a descriptor each. */
export function maxSessions(): number {
  return Math.min(Math.max(Math.floor(descriptorLimit() * 0.4), 100), MAX_SESSIONS);
}

/** Where nginx logs the sessions that ended. `state`: the folder that nginx writes to. */
export function accessLog(state: string): string {
  return `${state}/access.log`;
}

/** The PID file that nginx itself writes, when it has started. */
export function ownPid(state: string): string {
  return `${state}/nginx-own.pid`;
}

/** The stderr of nginx, which is the log of the daemon. */
export function errorLog(folder: string): string {
  return `${folder}/nginx.log`;
}

/** The enabled UDP listeners; none of a disabled load balancer. */
export function udpListeners(spec: Spec): DesiredListener[] {
  return spec.enabled ? spec.listeners.filter((each) => each.enabled && each.protocol === 'UDP') : [];
}

/** Whether a probed member is up; undefined: it is not probed. */
export type MemberVerdict = (member: string) => boolean | undefined;

/** @throws DriverError, permanent, as quote.ts */
export function renderNginx(settings: NginxSettings, specs: Spec[], verdict: MemberVerdict) {
  const { streamModule, sessions } = settings;
  const state = quote.path(settings.state);
  const parts = specs.flatMap((spec) => udpListeners(spec).map((listener) => ({ spec, listener })));
  const pools = new Map<string, DesiredPool>();
  for (const { spec, listener } of parts) {
    const pool = poolOf(spec, listener);
    if (pool) pools.set(pool.id, pool);
  }
  const upstreams = [...pools.values()].map((pool) => renderUpstream(pool, verdict));
  const prefixes = new Set([...pools.values()].map(prefixOf).filter((prefix) => prefix !== null));
  const tenants = new Set(parts.map(({ spec }) => spec.tenant)).size;
  const share = Math.ceil(Math.max(sessions / (tenants + 1), sessions / MAX_TENANT_DIVISOR));
  const servers = parts.map(({ spec, listener }) => renderServer(spec, listener, share, state));
  return `${streamModule === 'built in' ? '' : `load_module ${quote.path(streamModule)};\n`}daemon off;
worker_processes 1;
pid ${ownPid(state)};
error_log stderr notice;
worker_shutdown_timeout 10s;
events { worker_connections ${2 * sessions + parts.length + SPARE_CONNECTIONS}; }
stream {
${servers.length > 0 ? ZONES : ''}${[...[...prefixes].map(renderNetworks), ...upstreams, ...servers].join('')}}
`;
}

/** A pool without members has no upstream: nginx requires at least one server. */
function poolOf(spec: Spec, { defaultPoolId }: DesiredListener): DesiredPool | null {
  return spec.pools.find(({ id, enabled, members }) => id === defaultPoolId && enabled && members.length > 0) ?? null;
}

/** The length of the networks whose clients share a member; null: every address has its own. */
function prefixOf({ persistence }: DesiredPool): number | null {
  const mask = persistence?.granularity ?? null;
  if (mask === null) return null;
  const ones = (byte: string) => Number(byte).toString(2).replaceAll('0', '').length;
  const prefix = mask.includes('.') ? mask.split('.').reduce((sum, byte) => sum + ones(byte), 0) : Number(mask);
  return quote.whole('netmask', prefix, 1, 128);
}

/**
 * The variable `$network_<prefix>`: the whole bytes of the prefix, and which range the next byte is in. nginx has no masks,
 * so regular expressions read the address in its binary form, which is 4 or 16 bytes long.
 */
function renderNetworks(prefix: number): string {
  const bits = prefix % 8;
  const size = 256 / 2 ** bits;
  const hex = (byte: number) => String.raw`\x${byte.toString(16).padStart(2, '0')}`;
  const range = (i: number) => (bits === 0 ? '' : `[${hex(i * size)}-${hex((i + 1) * size - 1)}]`);
  const lines = Array.from(
    { length: 2 ** bits },
    (_, i) => `    "~(?s)^(?<head>.{${Math.floor(prefix / 8)}})${range(i)}" "$head ${i}";\n`,
  );
  return `  map $binary_remote_addr $network_${prefix} {\n${lines.join('')}  }\n`;
}

/** If all members are backups they are rendered as ordinary servers: nginx rejects an upstream of backups only. */
function renderUpstream(pool: DesiredPool, verdict: MemberVerdict): string {
  const sticky = pool.algorithm === 'SOURCE_IP' || pool.persistence?.type === 'SOURCE_IP';
  const prefix = prefixOf(pool);
  const lines = sticky ? [`hash ${prefix === null ? '$remote_addr' : `$network_${prefix}`} consistent;`] : [];
  if (!sticky && pool.algorithm === 'LEAST_CONNECTIONS') lines.push('least_conn;');
  const members = sticky ? withHashWeights(pool.members) : pool.members;
  const primaries = members.some(({ backup }) => !backup);
  for (const member of members) {
    const out = !member.enabled || member.weight === 0 || verdict(member.id) === false;
    const weight = quote.whole('weight', member.weight, 0, 256);
    const words = [quote.endpoint(member.address, member.port), `weight=${Math.max(weight, 1)}`, 'max_fails=0'];
    if (member.backup && primaries) words.push('backup');
    if (out) words.push('down');
    lines.push(`server ${words.join(' ')};`);
  }
  return `  upstream pool_${quote.id(pool.id)} {\n${lines.map((line) => `    ${line}\n`).join('')}  }\n`;
}

function renderServer(spec: Spec, listener: DesiredListener, share: number, state: string): string {
  const pool = poolOf(spec, listener);
  const id = quote.id(listener.id);
  const timeout = pool?.timeoutMemberData ?? listener.timeoutMemberData ?? listener.timeoutClientData ?? SESSION_MS;
  const lines = [
    ...addressesOf(spec).map((address) => `listen ${quote.endpoint(address, listener.port)} udp;`),
    `set $tenant tenant_${quote.token('tenant', spec.tenant)};`,
    `limit_conn tenants ${share};`,
    `limit_conn sources ${Math.ceil(share / 2)};`,
  ];
  const allowed = listener.connectionLimit === 0 ? [] : (listener.allowedNetworks ?? []);
  for (const network of allowed) lines.push(`allow ${quote.network(network)};`);
  if (listener.allowedNetworks !== null || listener.connectionLimit === 0) lines.push('deny all;');
  if (listener.connectionLimit > 0 && listener.connectionLimit < share)
    lines.push(`limit_conn listeners ${quote.whole('limit', listener.connectionLimit, 1, share)};`);
  lines.push(
    `proxy_timeout ${quote.milliseconds('timeout', timeout)};`,
    `access_log ${accessLog(state)} listener_${id} if=$accepted;`,
  );
  lines.push(pool ? `proxy_pass pool_${quote.id(pool.id)};` : 'return "";');
  const format = `  log_format listener_${id} '${id} $bytes_received $bytes_sent $status';\n`;
  return `${format}  server {\n${lines.map((line) => `    ${line}\n`).join('')}  }\n`;
}
