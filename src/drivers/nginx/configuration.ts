/**
 * The whole configuration of nginx for UDP listeners, from what is desired and what the driver's probes say; pure. A
 * member that is down, disabled or of weight 0 is a `down` server; nginx's own passive checks are off, so that what it
 * does is what the health monitor says.
 *
 * One worker: datagrams of one client must reach the same process, and two on one socket take turns. Source addresses
 * (algorithm or persistence) are hashed consistently, which needs no memory and survives a reload.
 */
import type { DesiredListener, DesiredPool } from '../load-balancer.ts';
import * as quote from '../haproxy/quote.ts';
import type { Spec } from '../haproxy/specs.ts';

export interface NginxSettings {
  folder: string;
  streamModule: string;
  unprivileged: boolean;
}

const SESSION_MS = 50_000;
/** nginx has two for each session, and takes no higher `limit_conn` than 65535. */
const WORKER_CONNECTIONS = 16_384;
const HIGHEST_LIMIT = 65_535;

export function accessLog(folder: string): string {
  return `${folder}/access.log`;
}

export function errorLog(folder: string): string {
  return `${folder}/nginx.log`;
}

export function udpListeners(spec: Spec): DesiredListener[] {
  return spec.enabled ? spec.listeners.filter((each) => each.enabled && each.protocol === 'UDP') : [];
}

export function renderNginx(settings: NginxSettings, specs: Spec[], verdict: (member: string) => boolean | undefined) {
  const { streamModule, unprivileged } = settings;
  const folder = quote.path(settings.folder);
  const parts = specs.flatMap((spec) => udpListeners(spec).map((listener) => ({ spec, listener })));
  const pools = new Map<string, DesiredPool>();
  for (const { spec, listener } of parts) {
    const pool = poolOf(spec, listener);
    if (pool) pools.set(pool.id, pool);
  }
  const upstreams = [...pools.values()].map((pool) => renderUpstream(pool, verdict));
  const servers = parts.map(({ spec, listener }) => renderServer(spec, listener, poolOf(spec, listener), folder));
  return `${streamModule === 'built in' ? '' : `load_module ${quote.path(streamModule)};\n`}daemon off;
${unprivileged ? 'user haproxy haproxy;\n' : ''}worker_processes 1;
pid ${folder}/nginx-own.pid;
error_log ${errorLog(folder)} notice;
worker_shutdown_timeout 60s;
events { worker_connections ${WORKER_CONNECTIONS}; }
stream {
  limit_conn_zone $server_addr:$server_port zone=listeners:1m;
${[...upstreams, ...servers].join('')}}
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

function renderServer(spec: Spec, listener: DesiredListener, pool: DesiredPool | null, folder: string): string {
  const id = quote.id(listener.id);
  const timeout = pool?.timeoutMemberData ?? listener.timeoutMemberData ?? listener.timeoutClientData ?? SESSION_MS;
  const lines = [`listen ${quote.endpoint(spec.address, listener.port)} udp;`];
  const allowed = listener.connectionLimit === 0 ? [] : (listener.allowedNetworks ?? []);
  for (const network of allowed) lines.push(`allow ${quote.network(network)};`);
  if (listener.allowedNetworks !== null || listener.connectionLimit === 0) lines.push('deny all;');
  if (listener.connectionLimit && listener.connectionLimit <= HIGHEST_LIMIT)
    lines.push(`limit_conn listeners ${quote.whole('limit', listener.connectionLimit, 1, HIGHEST_LIMIT)};`);
  lines.push(
    `proxy_timeout ${quote.milliseconds('timeout', timeout)};`,
    `access_log ${accessLog(folder)} listener_${id};`,
  );
  lines.push(pool ? `proxy_pass pool_${quote.id(pool.id)};` : 'return "";');
  const format = `  log_format listener_${id} '${id} $bytes_received $bytes_sent $status';\n`;
  return `${format}  server {\n${lines.map((line) => `    ${line}\n`).join('')}  }\n`;
}
