/**
 * The whole configuration of nginx for UDP listeners, from what is desired and what the driver's probes say; pure. A
 * member that is down, disabled or of weight 0 is a `down` server; nginx's own passive checks are off, so that what it
 * does is what the health monitor says.
 *
 * One worker: datagrams of one client must reach the same process, and two on one socket take turns. Source addresses
 * (algorithm or persistence) are hashed consistently, which needs no memory and survives a reload.
 *
 * Sessions are shared between tenants: each of n tenants with UDP listeners gets `sessions / (n + 1)`, at least one in 32,
 * and one source address half of that, so a flood of one tenant's listeners leaves those of others what they need.
 */
import { descriptorLimit } from '../haproxy/limits.ts';
import type { DesiredListener, DesiredPool } from '../load-balancer.ts';
import * as quote from '../haproxy/quote.ts';
import type { Spec } from '../haproxy/specs.ts';

export interface NginxSettings {
  /** Where it writes. */
  state: string;
  streamModule: string;
  /** Sessions at once, of all tenants together. */
  sessions: number;
}

const SESSION_MS = 50_000;
const MOST_SESSIONS = 16_384;
/** Beside those of sessions and listeners. */
const SPARE_CONNECTIONS = 1_024;
const LEAST_SHARE = 32;

/** nginx refuses them where no server sets `$tenant`. */
const ZONES = `  limit_conn_zone $server_addr:$server_port zone=listeners:1m;
  limit_conn_zone $tenant zone=tenants:1m;
  limit_conn_zone $tenant$binary_remote_addr zone=sources:10m;
  limit_conn_log_level info;
  map $status $accepted { 403 0; 503 0; default 1; }
`;

/** A session takes two connections, and nginx counts a descriptor for each. */
export function maxSessions(): number {
  return Math.min(Math.max(Math.floor(descriptorLimit() * 0.4), 100), MOST_SESSIONS);
}

export function accessLog(state: string): string {
  return `${state}/access.log`;
}

export function ownPid(state: string): string {
  return `${state}/nginx-own.pid`;
}

/** Its stderr: the daemon's log. */
export function errorLog(folder: string): string {
  return `${folder}/nginx.log`;
}

export function udpListeners(spec: Spec): DesiredListener[] {
  return spec.enabled ? spec.listeners.filter((each) => each.enabled && each.protocol === 'UDP') : [];
}

export function renderNginx(settings: NginxSettings, specs: Spec[], verdict: (member: string) => boolean | undefined) {
  const { streamModule, sessions } = settings;
  const state = quote.path(settings.state);
  const parts = specs.flatMap((spec) => udpListeners(spec).map((listener) => ({ spec, listener })));
  const pools = new Map<string, DesiredPool>();
  for (const { spec, listener } of parts) {
    const pool = poolOf(spec, listener);
    if (pool) pools.set(pool.id, pool);
  }
  const upstreams = [...pools.values()].map((pool) => renderUpstream(pool, verdict));
  const tenants = new Set(parts.map(({ spec }) => spec.tenant)).size;
  const share = Math.ceil(Math.max(sessions / (tenants + 1), sessions / LEAST_SHARE));
  const servers = parts.map(({ spec, listener }) => renderServer(spec, listener, share, state));
  return `${streamModule === 'built in' ? '' : `load_module ${quote.path(streamModule)};\n`}daemon off;
worker_processes 1;
pid ${ownPid(state)};
error_log stderr notice;
worker_shutdown_timeout 10s;
events { worker_connections ${2 * sessions + parts.length + SPARE_CONNECTIONS}; }
stream {
${servers.length > 0 ? ZONES : ''}${[...upstreams, ...servers].join('')}}
`;
}

/** A pool without members has no upstream: nginx wants at least one server. */
function poolOf(spec: Spec, { defaultPoolId }: DesiredListener): DesiredPool | null {
  return spec.pools.find(({ id, enabled, members }) => id === defaultPoolId && enabled && members.length > 0) ?? null;
}

/** Backups with nobody before them are written as ordinary servers: nginx refuses an upstream of backups alone. */
function renderUpstream(pool: DesiredPool, verdict: (member: string) => boolean | undefined): string {
  const sticky = pool.algorithm === 'SOURCE_IP' || pool.persistence?.type === 'SOURCE_IP';
  const lines = sticky ? ['hash $remote_addr consistent;'] : [];
  if (!sticky && pool.algorithm === 'LEAST_CONNECTIONS') lines.push('least_conn;');
  const primaries = pool.members.some(({ backup }) => !backup);
  for (const member of pool.members) {
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
    `listen ${quote.endpoint(spec.address, listener.port)} udp;`,
    `set $tenant tenant_${quote.token('tenant', spec.tenant)};`,
    `limit_conn tenants ${share};`,
    `limit_conn sources ${Math.ceil(share / 2)};`,
  ];
  const allowed = listener.connectionLimit === 0 ? [] : (listener.allowedNetworks ?? []);
  for (const network of allowed) lines.push(`allow ${quote.network(network)};`);
  if (listener.allowedNetworks !== null || listener.connectionLimit === 0) lines.push('deny all;');
  if (listener.connectionLimit && listener.connectionLimit < share)
    lines.push(`limit_conn listeners ${quote.whole('limit', listener.connectionLimit, 1, share)};`);
  lines.push(
    `proxy_timeout ${quote.milliseconds('timeout', timeout)};`,
    `access_log ${accessLog(state)} listener_${id} if=$accepted;`,
  );
  lines.push(pool ? `proxy_pass pool_${quote.id(pool.id)};` : 'return "";');
  const format = `  log_format listener_${id} '${id} $bytes_received $bytes_sent $status';\n`;
  return `${format}  server {\n${lines.map((line) => `    ${line}\n`).join('')}  }\n`;
}
