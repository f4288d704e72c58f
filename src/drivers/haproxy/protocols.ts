/**
 * Which protocols go together, and in which mode HAProxy handles them. A listener's protocol decides: behind HTTP and
 * TERMINATED_HTTPS requests are balanced, behind TCP and HTTPS bytes are, and UDP is nginx's. So an HTTPS pool encrypts
 * anew behind the first and is passed through behind the second, where there is nothing that it could encrypt.
 */
import type { DesiredListener, DesiredPool, ListenerProtocol, PoolProtocol } from '../load-balancer.ts';

export type Mode = 'http' | 'tcp' | 'udp';

const poolsOf: Record<ListenerProtocol, PoolProtocol[]> = {
  HTTP: ['HTTP', 'HTTPS', 'PROXY', 'PROXYV2'],
  TERMINATED_HTTPS: ['HTTP', 'HTTPS', 'PROXY', 'PROXYV2'],
  TCP: ['HTTP', 'HTTPS', 'PROXY', 'PROXYV2', 'TCP'],
  HTTPS: ['HTTPS', 'PROXY', 'PROXYV2', 'TCP'],
  UDP: ['UDP'],
  PROMETHEUS: [],
};

export function fits(listener: ListenerProtocol, pool: PoolProtocol): boolean {
  return poolsOf[listener]?.includes(pool) ?? false;
}

export function listenerMode({ protocol }: Pick<DesiredListener, 'protocol'>): Mode {
  if (protocol === 'UDP') return 'udp';
  return protocol === 'TCP' || protocol === 'HTTPS' ? 'tcp' : 'http';
}

/** All the modes that a pool is wanted in; without a listener its own protocol tells. */
export function poolModes(pool: Pick<DesiredPool, 'id' | 'protocol'>, listeners: DesiredListener[]): Mode[] {
  const modes = new Set(listeners.filter((each) => each.defaultPoolId === pool.id).map(listenerMode));
  if (modes.size > 0) return [...modes];
  if (pool.protocol === 'UDP') return ['udp'];
  return [pool.protocol === 'HTTP' || pool.protocol === 'HTTPS' ? 'http' : 'tcp'];
}
