/**
 * Health monitors that HAProxy runs, as lines of a backend and words of its servers; pure. PING and those of UDP pools
 * are not here: HAProxy has neither ICMP nor UDP, so the driver probes (probes.ts) and tells HAProxy the result.
 *
 * TLS-HELLO is a whole handshake: HAProxy's own `ssl-hello-chk` says SSLv3, which today's servers refuse.
 */
import type { Mode } from '../load-balancer-rules.ts';
import { isHostName, isStatusCodes } from '../load-balancer-text.ts';
import type { DesiredMonitor, DesiredPool } from '../load-balancer.ts';
import * as quote from './quote.ts';
import type { Spec } from './specs.ts';

/** A check of TCP or HTTP takes 0.05 ms of HAProxy, one with a handshake ten times that. */
const CHECKS_A_SECOND = 100;
const TLS_CHECK = 10;

export function isProbedByDriver(pool: DesiredPool): boolean {
  return pool.monitor?.enabled === true && (pool.monitor.type === 'PING' || pool.monitor.type === 'UDP-CONNECT');
}

function byHaproxy({ monitor }: DesiredPool): DesiredMonitor | null {
  return monitor?.enabled && !['PING', 'UDP-CONNECT'].includes(monitor.type) ? monitor : null;
}

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
    `http-check send meth ${method} uri ${quote.requestPath(monitor.urlPath ?? '/')} ${version(spec, monitor)}`,
    `http-check expect status ${codes}`,
  ];
}

/** HTTP/1.1 needs a name of the host; without one given it is the load balancer's address. */
function version({ address }: Spec, { httpVersion, domainName }: DesiredMonitor): string {
  if (domainName !== null && !isHostName(domainName)) throw quote.invalid('domain name', domainName);
  const chosen = httpVersion ?? (domainName === null ? '1.0' : '1.1');
  const host = domainName ?? (chosen === '1.1' ? quote.address(address) : null);
  return `ver HTTP/${chosen === '1.1' ? '1.1' : '1.0'}${host === null ? '' : ` hdr Host ${quote.literalFormat('domain name', host)}`}`;
}

/**
 * By how much a load balancer's intervals are stretched, so that it makes at most `CHECKS_A_SECOND`: all checks run in the
 * threads that carry everybody's traffic. A power of two, so that few changes of members change it, which takes a reload.
 */
export function stretchOf({ pools }: Spec): number {
  let perSecond = 0;
  for (const pool of pools) {
    const monitor = byHaproxy(pool);
    if (!monitor || !pool.enabled) continue;
    const cost = monitor.type === 'HTTPS' || monitor.type === 'TLS-HELLO' ? TLS_CHECK : 1;
    perSecond += (pool.members.length * cost * 1_000) / Math.max(monitor.delay, 1);
  }
  return 2 ** Math.max(Math.ceil(Math.log2(perSecond / CHECKS_A_SECOND)), 0);
}

/** Address and port of a check are given for each server, and then HAProxy takes over neither TLS nor PROXY by itself. */
export function monitorOptions(pool: DesiredPool, mode: Mode, stretch: number): string[] {
  const monitor = byHaproxy(pool);
  if (!monitor) return [];
  const times = ['inter', quote.milliseconds('monitor delay', monitor.delay * stretch)];
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
