/**
 * How tenants share one HAProxy.
 *
 * Invariant: however many connections some tenants hold, there is room for the next connection of another tenant.
 *
 * A tenant may hold as many connections as are free: the next one is refused when `its own + all > maxConnections`. One
 * greedy tenant gets a half, n of them get 1/(n+1) each, and as much stays free for everybody else. The rule does not
 * depend on the number of tenants or listeners, so nothing is reloaded when that changes. A source address gets a third
 * of what is free; IPv6 counts by /64.
 *
 * HAProxy 2.6 tracks three counters a connection: 0 is the tenant, 1 the source, 2 all. Each stream of HTTP/2 opens a
 * connection to a member, so a connection of HTTP/2 has the streams of its tenant as counter 1, and no limit for its
 * source. Only TERMINATED_HTTPS speaks HTTP/2.
 *
 * Failure modes: a new worker counts from zero after a reload, while the old one still holds its connections.
 */
import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { listenerMode } from '../load-balancer-rules.ts';
import type { DesiredListener } from '../load-balancer.ts';
import * as quote from './quote.ts';

/** Connections, streams and password checks of each tenant, and of all. */
const TENANTS = 'cloudyard_tenants';
const SOURCES = 'cloudyard_sources';
const MOST_TENANTS = 100_000;
const MOST_CONNECTIONS = 100_000;
/** Two buffers of 16 KiB, a TLS session and the rest. */
const CONNECTION_BYTES = 64 * 1024;

/** Two descriptors a connection in 0.8 of the limit; the rest is for listeners, checks and idle connections. */
export function maxConnections(): number {
  const memory = Math.min(totalmem(), process.constrainedMemory() || Infinity);
  const fitting = Math.min(descriptorLimit() * 0.4, memory / 4 / CONNECTION_BYTES);
  return Math.min(Math.max(Math.floor(fitting), 100), MOST_CONNECTIONS);
}

/** The hard limit: Node raises its soft limit to that when it starts, and what it starts inherits it. */
export function descriptorLimit(): number {
  try {
    return Number(/^Max open files\s+\S+\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? '1024');
  } catch {
    return 1_024;
  }
}

/** Sections of the global file: what frontends count in. Sources are kept for a rate over ten seconds. */
export function limitTables(maxConnections: number): string {
  const sources = quote.whole('maxConnections', maxConnections, 1, 10_000_000) * 2;
  return `backend ${TENANTS}
  stick-table type string len 64 size ${MOST_TENANTS} expire 60s store conn_cur,gpc0_rate(1s)
backend ${SOURCES}
  stick-table type ipv6 size ${sources} expire 60s store conn_cur,gpc0_rate(10s)
`;
}

/** What a listener may hold: the tenant's own limit, and at most what one tenant gets when it is alone. */
export function listenerConnections(limit: number | null, maxConnections: number): number {
  const share = Math.max(Math.floor(maxConnections / 2), 1);
  return limit === null ? share : Math.min(quote.whole('connection limit', limit, 1, 10_000_000), share);
}

/** Lines of a frontend: connections are counted when they are accepted, before any TLS. */
export function connectionRules(listener: DesiredListener, tenant: string, maxConnections: number): string[] {
  const most = quote.whole('maxConnections', maxConnections, 1, 10_000_000);
  const name = quote.token('tenant', tenant);
  const lines = [
    `tcp-request connection track-sc0 str(tenant_${name}) table ${TENANTS}`,
    `tcp-request connection track-sc2 str(all) table ${TENANTS}`,
    'tcp-request connection set-var(sess.all) sc_conn_cur(2)',
    `tcp-request connection reject if { sc_conn_cur(0),add(sess.all) gt ${most} }`,
  ];
  const source = (step: string, condition = '') => [
    `tcp-request ${step} track-sc1 src,ipmask(32,64) table ${SOURCES}${condition}`,
    `tcp-request ${step} reject if { sc_conn_cur(1),mul(3),add(sess.all) gt ${most} }`,
  ];
  if (listener.protocol === 'TERMINATED_HTTPS') {
    return [...lines, ...source('session', ' if !{ ssl_fc_alpn h2 }'), ...streamRules(name, maxConnections)];
  }
  if (listenerMode(listener.protocol) === 'http') lines.push('option disable-h2-upgrade');
  return [...lines, ...source('connection')];
}

function streamRules(tenant: string, maxConnections: number): string[] {
  return [
    'acl http2 fc_http_major 2',
    `http-request track-sc1 str(streams_${tenant}) table ${TENANTS} if http2`,
    `http-request return status 503 if http2 { sc_conn_cur(1) gt ${Math.ceil(maxConnections / 8)} }`,
  ];
}
