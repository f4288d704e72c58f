/**
 * Pure: the health monitors that HAProxy runs, as lines of a backend and options of its servers. HAProxy has neither ICMP
 * nor UDP, so the driver runs PING and UDP-CONNECT (probes.ts) and reports the results to HAProxy.
 *
 * TLS-HELLO is a full handshake: HAProxy's own `ssl-hello-chk` uses SSLv3, which current servers reject.
 */
import type { Mode } from '../load-balancer-rules.ts';
import { isHostName, isStatusCodes } from '../load-balancer-text.ts';
import type { DesiredMonitor, DesiredPool } from '../load-balancer.ts';
import * as quote from './quote.ts';
import type { Spec } from './specs.ts';

/** A TCP or HTTP check costs HAProxy 0.05 ms, a check with a TLS handshake ten times as much. */
const CHECKS_A_SECOND = 100;
const TLS_CHECK_COST = 10;

/** Whether the pool has an enabled PING or UDP-CONNECT monitor. */
export function isProbedByDriver(pool: DesiredPool): boolean {
  return pool.monitor?.enabled === true && (pool.monitor.type === 'PING' || pool.monitor.type === 'UDP-CONNECT');
}

function byHaproxy({ monitor }: DesiredPool): DesiredMonitor | null {
  return monitor?.enabled && !['PING', 'UDP-CONNECT'].includes(monitor.type) ? monitor : null;
}

/** Lines of a backend; none without a monitor that HAProxy runs. @throws DriverError, permanent, as quote.ts */
export function monitorLines(spec: Spec, pool: DesiredPool): string[] {
  const monitor = byHaproxy(pool);
  if (!monitor) return [];
  const lines = [`timeout check ${quote.milliseconds('monitor timeout', monitor.timeout)}`];
  if (monitor.type !== 'HTTP' && monitor.type !== 'HTTPS') return lines;
  const method = quote.token('HTTP method', monitor.httpMethod ?? 'GET');
  const codes = monitor.expectedCodes ?? '200';
  if (!isStatusCodes(codes)) throw quote.invalid('expected codes', codes);
  return [
    ...lines,
    'option httpchk',
    `http-check send meth ${method} uri ${quote.requestPath(monitor.urlPath ?? '/')} ${httpVersion(spec, monitor)}`,
    `http-check expect status ${codes}`,
  ];
}

/** HTTP/1.1 needs a Host header; by default it is the address of the load balancer. */
function httpVersion({ address }: Spec, { httpVersion: version, domainName }: DesiredMonitor): string {
  if (domainName !== null && !isHostName(domainName)) throw quote.invalid('domain name', domainName);
  const chosen = version ?? (domainName === null ? '1.0' : '1.1');
  const host = domainName ?? (chosen === '1.1' ? quote.address(address) : null);
  return `ver HTTP/${chosen === '1.1' ? '1.1' : '1.0'}${host === null ? '' : ` hdr Host ${quote.literalFormat('domain name', host)}`}`;
}

/**
 * The factor by which check intervals grow, so that a load balancer makes at most `CHECKS_A_SECOND`: checks run in the
 * threads that carry the traffic of all tenants. It is a power of two, because a changed factor needs a reload.
 */
export function intervalFactor({ pools }: Spec): number {
  let perSecond = 0;
  for (const pool of pools) {
    const monitor = byHaproxy(pool);
    if (!monitor || !pool.enabled) continue;
    const cost = monitor.type === 'HTTPS' || monitor.type === 'TLS-HELLO' ? TLS_CHECK_COST : 1;
    perSecond += (pool.members.length * cost * 1_000) / Math.max(monitor.delay, 1);
  }
  return 2 ** Math.max(Math.ceil(Math.log2(perSecond / CHECKS_A_SECOND)), 0);
}

/** Every server has its own check address and port, so HAProxy inherits neither TLS nor PROXY from the server. */
export function monitorOptions(pool: DesiredPool, mode: Mode, factor: number): string[] {
  const monitor = byHaproxy(pool);
  if (!monitor) return [];
  const times = ['inter', quote.milliseconds('monitor delay', monitor.delay * factor)];
  const counts = ['rise', quote.whole('max retries', monitor.maxRetries, 1, 1_000)];
  const countsDown = ['fall', quote.whole('max retries down', monitor.maxRetriesDown, 1, 1_000)];
  const words = ['check', ...times, ...counts, ...countsDown].map(String);
  if (pool.protocol === 'PROXY' || pool.protocol === 'PROXYV2') words.push('check-send-proxy');
  if (monitor.type !== 'HTTPS' && monitor.type !== 'TLS-HELLO') return words;
  words.push('check-ssl');
  if (monitor.domainName !== null) words.push('check-sni', quote.token('domain name', monitor.domainName));
  const encrypted = pool.protocol === 'HTTPS' && mode === 'http';
  return encrypted ? words : [...words, 'verify', 'none'];
}
