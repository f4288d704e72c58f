/**
 * How tenants share one HAProxy.
 *
 * Invariant: however many connections some tenants hold, there is room for the next connection of another tenant.
 *
 * A tenant may hold as many connections as are free: the next one is rejected if `its own + all > maxConnections`. One
 * tenant gets at most a half, n tenants get 1/(n+1) each, and the same share stays free for others. The rule does not
 * depend on the number of tenants or listeners, so their changes need no reload. A source address gets a third of the
 * free connections; IPv6 sources are counted by /64.
 *
 * HAProxy 2.6 tracks three counters for a connection: 0 is the tenant, 1 the source, 2 all. Every HTTP/2 stream opens a
 * connection to a member, so for HTTP/2 counter 1 counts the streams of the tenant, and sources have no limit. Only
 * TERMINATED_HTTPS supports HTTP/2.
 *
 * Failure modes: a new worker counts from zero after a reload, while the old one still has its connections.
 */
import { totalmem } from 'node:os';
import { descriptorLimit } from '../../platform/descriptors.ts';
import { listenerMode } from '../load-balancer-rules.ts';
import type { DesiredListener } from '../load-balancer.ts';
import * as quote from './quote.ts';

/** Connections, streams and password checks by tenant, and of all tenants. */
const TENANTS = 'cloudyard_tenants';
const SOURCES = 'cloudyard_sources';
const MAX_TENANTS = 100_000;
const MAX_CONNECTIONS = 100_000;
/** Two buffers of 16 KiB, a TLS session and bookkeeping. */
const CONNECTION_BYTES = 64 * 1024;

/** A connection needs two descriptors. A fifth of the limit is for listeners, checks and idle connections. */
export function maxConnections(): number {
  const memory = Math.min(totalmem(), process.constrainedMemory() || Infinity);
  const affordable = Math.min(descriptorLimit() * 0.4, memory / 4 / CONNECTION_BYTES);
  return Math.min(Math.max(Math.floor(affordable), 100), MAX_CONNECTIONS);
}

/** Sections of the global file: the tables that frontends count in. Sources have a rate over ten seconds. */
export function limitTables(maxConnections: number): string {
  const sources = quote.whole('maxConnections', maxConnections, 1, 10_000_000) * 2;
  return `backend ${TENANTS}
  stick-table type string len 64 size ${MAX_TENANTS} expire 60s store conn_cur,gpc0_rate(1s)
backend ${SOURCES}
  stick-table type ipv6 size ${sources} expire 60s store conn_cur,gpc0_rate(10s)
`;
}

/** The limit of the listener, and at most the share of a single tenant. */
export function listenerConnections(limit: number, maxConnections: number): number {
  const share = Math.max(Math.floor(maxConnections / 2), 1);
  return Math.min(quote.whole('connection limit', limit, 1, 10_000_000), share);
}

/** Lines of a frontend. Connections are counted when they are accepted, before TLS. */
export function connectionRules(listener: DesiredListener, tenant: string, maxConnections: number): string[] {
  const max = quote.whole('maxConnections', maxConnections, 1, 10_000_000);
  const name = quote.token('tenant', tenant);
  const lines = [
    `tcp-request connection track-sc0 str(tenant_${name}) table ${TENANTS}`,
    `tcp-request connection track-sc2 str(all) table ${TENANTS}`,
    'tcp-request connection set-var(sess.all) sc_conn_cur(2)',
    `tcp-request connection reject if { sc_conn_cur(0),add(sess.all) gt ${max} }`,
  ];
  const source = (step: string, condition = '') => [
    `tcp-request ${step} track-sc1 src,ipmask(32,64) table ${SOURCES}${condition}`,
    `tcp-request ${step} reject if { sc_conn_cur(1),mul(3),add(sess.all) gt ${max} }`,
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
