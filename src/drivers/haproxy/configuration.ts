/**
 * Pure: the configuration of HAProxy, with one file for each load balancer. A listener is a frontend `listener_<id>`, a pool
 * is a backend `pool_<id>`, a member is a server.
 *
 * Invariant: two renderings with the same `settings` (everything but the servers) differ only in what the runtime API can
 * change; everything else needs a reload. The `description` of a running HAProxy contains the digest of all settings.
 */
import { hash } from 'node:crypto';
import { ACCOUNTS } from '../confined.ts';
import { listenerMode, type Mode, poolModes } from '../load-balancer-rules.ts';
import {
  addressesOf,
  type DesiredListener,
  type DesiredPool,
  type Peer,
  PEER_PORT,
  type Peers,
} from '../load-balancer.ts';
import { udpListeners } from '../nginx/configuration.ts';
import { authenticationRules, cacheChecked, cachingRules, userList, verifiedTable } from './authentication.ts';
import { withHashWeights } from './hash-weights.ts';
import { l7Lines } from './l7-policies.ts';
import type { Layout } from './layout.ts';
import { connectionRules, limitTables, listenerConnections } from './limits.ts';
import { intervalFactor, monitorLines, monitorOptions } from './monitor-lines.ts';
import * as quote from './quote.ts';
import { type RenderedPool, type Server, serverLine } from './servers.ts';
import { type Files, nameFile, type Spec } from './specs.ts';
import { listenersInFrontOf, protocolsInFrontOf } from './validation.ts';

export type Rendered = ReturnType<typeof renderBalancer>;

export interface GlobalSettings {
  /** The workers of HAProxy run under their own account. */
  unprivileged: boolean;
  /** The maximum of open connections of all listeners together. */
  maxConnections: number;
  /** Seconds after a reload until the old process closes its remaining connections. */
  hardStopSeconds: number;
  /** The maximum of old processes; one more reload ends the oldest. */
  oldWorkers: number;
  /** The hosts that share stick tables with this one; null: the region has one host. */
  peers: Peers | null;
}

const DEFAULT_CLIENT_MS = 50_000;
const DEFAULT_CONNECT_MS = 5_000;
const DEFAULT_SERVER_MS = 50_000;
/** The time for all headers of a request. */
const REQUEST_MS = 10_000;
const NETWORKS_PER_LINE = 20;
/** Clients of one load balancer with session persistence; each takes up to 250 bytes. */
const STICKY_CLIENTS = 100_000;
const STICKY_SECONDS = 1_800;
/** Pools that share a host name have cookies of their own: one cookie would lose its member with each request to the other pool. */
const sessionCookie = (poolId: string) => `SRV_${quote.id(poolId).slice(0, 8)}`;

/** How the names of frontends and backends begin. */
export const LISTENER = 'listener_';
export const POOL = 'pool_';
export const listenerName = (id: string) => `${LISTENER}${quote.id(id)}`;
export const poolName = (id: string) => `${POOL}${quote.id(id)}`;
const FILES_SERVER = 'files';
const EXPORTER = 'cloudyard_exporter';

/**
 * The file that HAProxy reads first. `revision` and `structure` (the digest of all settings) are what the running HAProxy
 * reports, so that the driver knows what it runs.
 */
export function renderGlobal(settings: GlobalSettings, layout: Layout, revision: string, structure: string): string {
  return `global
  description cloudyard ${quote.token('revision', revision)} ${quote.token('structure', structure)}
${globalSettings(settings, layout)}  stats socket unix@${quote.path(layout.adminSocket(revision))} mode 600 level admin expose-fd listeners
${fixedSections(settings, layout)}`;
}

/**
 * Every start, reload and check reads the certificate authorities of the host for HAProxy's own HTTP client, which no
 * configuration here uses: 21 of the 30 ms of CPU time of a check. Members are verified by the bundle of their pool.
 */
export const WITHOUT_AUTHORITIES = 'httpclient.ssl.verify none';

/**
 * Each reload starts all checks again, by default spread over their interval: frequent changes of other load balancers would
 * keep the last ones from ever running.
 */
const FIRST_CHECKS_MS = 1_000;

/**
 * With `no strict-limits` a low limit of open files means fewer connections instead of no service. Finite-field
 * Diffie-Hellman is off: a client chooses its size, and 8,192 bits cost the server 13 ms for a handshake. A member also chooses
 * its prime, and the same size costs 250 ms.
 */
function globalSettings(settings: GlobalSettings, layout: Layout): string {
  return `  no strict-limits
  maxconn ${quote.whole('maxConnections', settings.maxConnections, 1, 10_000_000)}
  hard-stop-after ${quote.whole('hardStopSeconds', settings.hardStopSeconds, 1, 2_000_000)}s
  mworker-max-reloads ${quote.whole('oldWorkers', settings.oldWorkers, 1, 10_000)}
  localpeer ${settings.peers ? peerName(settings.peers.self) : 'local'}
  server-state-file ${quote.path(layout.stateFile)}
  stats timeout 60s
  ssl-default-bind-options ssl-min-ver TLSv1.2
  ssl-default-bind-curves X25519:P-256:P-384
  ssl-default-bind-ciphers DEFAULT:!kDHE
  ssl-default-server-ciphers DEFAULT:!kDHE
  ${WITHOUT_AUTHORITIES}
  spread-checks 5
  max-spread-checks ${FIRST_CHECKS_MS}ms
${settings.unprivileged ? `  user ${ACCOUNTS.haproxy}\n  group ${ACCOUNTS.haproxy}\n` : ''}`;
}

/** The exporter is in exporter.ts. */
function fixedSections(settings: GlobalSettings, layout: Layout): string {
  const { maxConnections } = settings;
  return `${peerSection(settings, layout)}${DEFAULTS}
backend ${EXPORTER}
  mode http
  ${cacheChecked}
  server exporter unix@${quote.path(layout.exporterSocket)}
${limitTables(maxConnections)}${verifiedTable}${peerListener(settings, layout)}`;
}

/**
 * Keeps stick tables over a reload, and shares them with other hosts. The socket must be a Unix socket: after a reload the old
 * worker sends the tables there, and an address would also be that of its own listener.
 */
function peerSection({ unprivileged, peers }: GlobalSettings, layout: Layout): string {
  const owner = unprivileged ? ` user ${ACCOUNTS.haproxy}` : '';
  return `peers cloudyard\n${indented([
    `bind unix@${quote.path(layout.peerSocket)} mode 600${owner}`,
    ...(peers ? peerLines(peers) : ['server local']),
  ])}`;
}

/**
 * The others accept connections from the address by which they know a host. `source` alone does not ensure it: HAProxy 2.6
 * ignored it between two addresses of loopback. So the route must have this address, too (docs/several-hosts.md).
 */
function peerLines({ self, others }: Peers): string[] {
  const endpointOf = ({ address }: Peer) =>
    `${quote.endpoint(address, PEER_PORT)} source ${quote.address(self.address)}`;
  return [`server ${peerName(self)}`, ...others.map((peer) => `server ${peerName(peer)} ${endpointOf(peer)}`)];
}

/**
 * Where the peers of other hosts connect. A section of peers has one socket only. The protocol has no authentication, and the
 * tables contain cookies of members, with which anyone could hijack a session.
 */
function peerListener({ peers }: GlobalSettings, layout: Layout): string {
  if (!peers) return '';
  return `listen cloudyard_peers\n${indented([
    ...['mode tcp', 'timeout client 1h', 'timeout server 1h'],
    `bind ${quote.endpoint(peers.self.address, PEER_PORT)}`,
    ...onlyFrom(peers.others.map(({ address }) => address)),
    `server local unix@${quote.path(layout.peerSocket)}`,
  ])}`;
}

const peerName = ({ name }: Peer) => `host_${quote.token('host', name)}`;

const DEFAULTS = `defaults
  load-server-state-from-file global
  timeout client ${DEFAULT_CLIENT_MS}ms
  timeout connect ${DEFAULT_CONNECT_MS}ms
  timeout server ${DEFAULT_SERVER_MS}ms
  timeout http-request ${REQUEST_MS}ms
  timeout http-keep-alive ${DEFAULT_CLIENT_MS}ms
  option redispatch
  option allbackups
`;

/** The digest of everything that needs a reload. */
export function structureOf(settings: GlobalSettings, layout: Layout, rendered: Iterable<Rendered>): string {
  const ordered = [...rendered].sort((a, b) => (a.id < b.id ? -1 : 1));
  const parts = [
    globalSettings(settings, layout),
    fixedSections(settings, layout),
    ...ordered.map((each) => each.settings),
  ];
  return hash('sha256', parts.join('')).slice(0, 32);
}

/**
 * Renders the sections of one load balancer, its files and what the runtime API can change. Disabled parts and UDP are
 * omitted.
 */
export function renderBalancer(spec: Spec, layout: Layout, maxConnections: number) {
  const files: Files = new Map();
  const listeners = spec.enabled ? spec.listeners.filter((each) => each.enabled && each.protocol !== 'UDP') : [];
  const modes = new Map(
    spec.pools.map((pool) => [pool.id, poolModes(pool.protocol, protocolsInFrontOf(pool, spec.listeners))[0] ?? 'tcp']),
  );
  const enabled = spec.enabled ? spec.pools.filter((pool) => pool.enabled && modes.get(pool.id) !== 'udp') : [];
  const context: RenderContext = { layout, files, maxConnections };
  const fronts = listeners.map((listener) => renderListener(spec, listener, enabled, context));
  const factor = intervalFactor(spec);
  const backs = enabled.map((pool) => {
    const mode = modes.get(pool.id) ?? 'tcp';
    return { rendered: renderPool(pool, mode, layout, factor), head: backendHead(spec, pool, mode, layout) };
  });
  const empty = fronts.length === 0 && backs.length === 0;
  const fixed = [...fronts, ...backs.map(({ head, rendered }) => `${head}#${rendered.options.join(' ')}\n`)].join('');
  const text = backs.map(({ head, rendered }) => head + rendered.servers.map((s) => serverLine(rendered, s)).join(''));
  return {
    id: quote.id(spec.id),
    /** The digest of everything but the servers; empty if HAProxy has nothing to serve. */
    settings: empty ? '' : hash('sha256', `${spec.id}\n${DEFAULTS}${fixed}`),
    text: empty ? '' : `${DEFAULTS}${fronts.join('')}${text.join('')}`,
    pools: backs.map(({ rendered }) => rendered),
    /** The endpoints by listener id. */
    endpoints: new Map(listeners.map(({ id, port }) => [id, addressesOf(spec).map((address) => ({ address, port }))])),
    /** The ports that nginx listens on. */
    udpPorts: udpListeners(spec).map(({ port }) => port),
    addresses: addressesOf(spec),
    /** Lists of certificates, written next to the certificates. */
    files,
  };
}

interface RenderContext {
  layout: Layout;
  /** Lists of certificates are added to it. */
  files: Files;
  maxConnections: number;
}

function renderListener(
  spec: Spec,
  listener: DesiredListener,
  pools: DesiredPool[],
  { layout, files, maxConnections }: RenderContext,
) {
  const { protocol, connectionLimit, allowedNetworks } = listener;
  const pool = pools.find(({ id }) => id === listener.defaultPoolId) ?? null;
  const mode = listenerMode(protocol);
  const name = listenerName(listener.id);
  const options = tls(listener, layout, files);
  const binds = addressesOf(spec).map((address) => `bind ${quote.endpoint(address, listener.port)}${options}`);
  const lines = [`mode ${mode}`, ...binds];
  // Otherwise a reload could close an idle connection while its client sends the next request.
  if (mode === 'http') lines.push('option idle-close-on-response');
  // `maxconn 0` means no limit.
  if (connectionLimit === 0) lines.push('tcp-request connection reject');
  else lines.push(`maxconn ${listenerConnections(connectionLimit, maxConnections)}`);
  const client = listener.timeoutClientData ?? pool?.timeoutClientData ?? null;
  if (client !== null) lines.push(...clientTimeouts(quote.milliseconds('client timeout', client), mode));
  if (allowedNetworks) lines.push(...onlyFrom(allowedNetworks));
  lines.push(...connectionRules(listener, spec.tenant, maxConnections), ...authenticationRules(listener));
  if (listener.insertXForwarded) {
    lines.push('option forwardfor', 'http-request set-header X-Forwarded-Port %[dst_port]');
    lines.push(`http-request set-header X-Forwarded-Proto ${protocol === 'TERMINATED_HTTPS' ? 'https' : 'http'}`);
  }
  if (protocol === 'PROMETHEUS') {
    lines.push('http-request return status 404 unless { path /metrics }');
    lines.push(`http-request set-path /${quote.id(spec.id)}`, `default_backend ${EXPORTER}`);
  }
  lines.push(...l7Lines(listener.l7Policies, new Map(pools.map(({ id }) => [id, poolName(id)]))));
  if (pool) lines.push(`default_backend ${poolName(pool.id)}`);
  return `${userList(listener)}frontend ${name}\n${indented(lines)}`;
}

function clientTimeouts(time: string, mode: Mode): string[] {
  return [`timeout client ${time}`, ...(mode === 'http' ? [`timeout http-keep-alive ${time}`] : [])];
}

function onlyFrom(networks: string[]): string[] {
  if (networks.length === 0) return ['tcp-request connection reject'];
  const lines: string[] = [];
  for (let at = 0; at < networks.length; at += NETWORKS_PER_LINE) {
    const some = networks.slice(at, at + NETWORKS_PER_LINE).map(quote.network);
    lines.push(`acl from_allowed_network src ${some.join(' ')}`);
  }
  return [...lines, 'tcp-request connection reject unless from_allowed_network'];
}

/** Clients without SNI, or with a name that no certificate matches, get the first certificate of the list. */
function tls({ protocol, certificate, sniCertificates }: DesiredListener, layout: Layout, files: Files): string {
  if (!certificate) return '';
  const names = [certificate, ...sniCertificates].map(({ pem }) => quote.path(layout.certificate(pem)));
  const list = nameFile(files, `${[...new Set(names)].join('\n')}\n`, 'list');
  const versions = protocol === 'PROMETHEUS' ? 'http/1.1' : 'h2,http/1.1';
  return ` ssl crt-list ${quote.path(layout.certificate(list))} alpn ${versions}`;
}

/** `balance source` needs consistent hashing: servers can be added and removed at run time, and few clients move. */
function backendHead(spec: Spec, pool: DesiredPool, mode: Mode, layout: Layout): string {
  const [listener] = listenersInFrontOf(pool, spec.listeners);
  const lines = [`mode ${mode}`, ...balance[pool.algorithm]];
  const connect = pool.timeoutMemberConnect ?? listener?.timeoutMemberConnect ?? null;
  const data = pool.timeoutMemberData ?? listener?.timeoutMemberData ?? null;
  if (connect !== null) lines.push(`timeout connect ${quote.milliseconds('connect timeout', connect)}`);
  if (data !== null) lines.push(`timeout server ${quote.milliseconds('server timeout', data)}`);
  lines.push(...persistence(spec, pool), ...cachingRules(mode, spec.listeners), ...monitorLines(spec, pool));
  const options = tlsToMembers(pool, mode, layout);
  // Never used: it loads the files, because servers added at run time cannot load files (measured).
  if (options.length > 0) lines.push(`server ${FILES_SERVER} 127.0.0.1:1 disabled ${options.join(' ')}`);
  return `backend ${poolName(pool.id)}\n${indented(lines)}`;
}

const balance: Record<DesiredPool['algorithm'], string[]> = {
  ROUND_ROBIN: ['balance roundrobin'],
  LEAST_CONNECTIONS: ['balance leastconn'],
  SOURCE_IP: ['balance source', 'hash-type consistent'],
};

/** Dynamic cookies contain a digest of the member's address, because `add server` does not support `cookie`. */
function persistence(spec: Spec, { id, persistence }: DesiredPool): string[] {
  if (!persistence) return [];
  const { pools } = spec;
  const stickyPools = pools.filter((pool) => pool.persistence && pool.persistence.type !== 'HTTP_COOKIE').length;
  const clients = Math.ceil(STICKY_CLIENTS / Math.max(stickyPools, 1));
  const { type, cookieName } = persistence;
  if (type === 'HTTP_COOKIE') {
    const cookie = cookieName === null ? sessionCookie(id) : quote.token('cookie name', cookieName);
    return [`cookie ${cookie} insert indirect nocache dynamic httponly`, `dynamic-cookie-key ${quote.id(id)}`];
  }
  if (type === 'APP_COOKIE') {
    const cookie = quote.token('cookie name', cookieName ?? '');
    const table = `stick-table type string len 128 size ${clients} expire 24h peers cloudyard`;
    return [table, `stick store-response res.cook(${cookie})`, `stick match req.cook(${cookie})`];
  }
  // IPv6 tables hold IPv4 addresses, too.
  const addresses = addressesOf(spec).some((address) => address.includes(':')) ? 'ipv6' : 'ip';
  return [`stick-table type ${addresses} size ${clients} expire ${STICKY_SECONDS}s peers cloudyard`, 'stick on src'];
}

function renderPool(pool: DesiredPool, mode: Mode, layout: Layout, factor: number): RenderedPool {
  const proxy = { PROXY: ['send-proxy'], PROXYV2: ['send-proxy-v2'] }[pool.protocol as string] ?? [];
  const check = monitorOptions(pool, mode, factor);
  const members = pool.algorithm === 'SOURCE_IP' ? withHashWeights(pool.members) : pool.members;
  return {
    id: pool.id,
    backend: poolName(pool.id),
    options: [...tlsToMembers(pool, mode, layout), ...proxy, ...check],
    checked: check.length > 0,
    cookies: pool.persistence?.type === 'HTTP_COOKIE',
    servers: members.map(serverOf),
  };
}

/** Names the server of a member in its role. */
export function serverName({ id, backup }: { id: string; backup: boolean }): string {
  return `${backup ? 'backup' : 'member'}_${quote.id(id)}`;
}

function serverOf(member: DesiredPool['members'][number]): Server {
  return {
    name: serverName(member),
    member: member.id,
    address: member.address,
    port: quote.whole('port', member.port, 1, 65_535),
    weight: quote.whole('weight', member.weight, 0, 256),
    backup: member.backup,
    maint: !member.enabled,
    checkAddress: member.monitorAddress ?? member.address,
    checkPort: quote.whole('monitor port', member.monitorPort ?? member.port, 1, 65_535),
  };
}

function tlsToMembers(pool: DesiredPool, mode: Mode, layout: Layout): string[] {
  if (pool.protocol !== 'HTTPS' || mode !== 'http') return [];
  const file = (name: string) => quote.path(layout.certificate(name));
  const words = ['ssl', 'alpn', 'http/1.1'];
  if (pool.caBundle === null) words.push('verify', 'none');
  else words.push('verify', 'required', 'ca-file', file(pool.caBundle));
  if (pool.revocationList !== null) words.push('crl-file', file(pool.revocationList));
  if (pool.clientCertificate !== null) words.push('crt', file(pool.clientCertificate.pem));
  return words;
}

function indented(lines: string[]): string {
  return lines.map((line) => `  ${line}\n`).join('');
}
