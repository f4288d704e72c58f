/**
 * Load balancers that have load balancers of this host as members; pure. In a circle a single request would be passed on
 * until no connection is left for anybody (measured: 2 s), since one process serves them all.
 */
import { DriverError } from '../driver.ts';
import type { DesiredListener } from '../load-balancer.ts';
import { listenerMode } from './protocols.ts';
import type { Spec } from './specs.ts';

interface Hop {
  /** Transport, address and port. */
  to: string;
  name: string;
}

/** `present` are all specs of the host; one with the id of `spec` does not count. @throws DriverError */
export function refuseCircle(spec: Spec, present: Iterable<Spec>): void {
  const fronts = new Map<string, { spec: Spec; listener: DesiredListener }>();
  for (const each of [...present].filter(({ id }) => id !== spec.id).concat(spec)) {
    for (const listener of each.listeners) fronts.set(endpointOf(each, listener), { spec: each, listener });
  }
  const hopsFrom = (endpoint: string) => {
    const front = fronts.get(endpoint);
    return front ? hops(front.spec, front.listener).filter(({ to }) => fronts.has(to)) : [];
  };
  for (const listener of spec.listeners) {
    const start = endpointOf(spec, listener);
    for (const { to, name } of hopsFrom(start)) {
      if (to === start || leadsTo(start, to, hopsFrom)) throw inCircle(name, listener.port);
    }
  }
}

function leadsTo(end: string, from: string, hopsFrom: (endpoint: string) => Hop[]): boolean {
  const seen = new Set([from]);
  // Grows while it is gone through.
  for (const endpoint of seen) for (const { to } of hopsFrom(endpoint)) seen.add(to);
  return seen.has(end);
}

function hops({ pools }: Spec, listener: DesiredListener): Hop[] {
  const members = pools.find(({ id }) => id === listener.defaultPoolId)?.members ?? [];
  return members.map(({ address, port }) => ({
    to: `${transport(listener)} ${address} ${port}`,
    name: `${address} port ${port}`,
  }));
}

function endpointOf({ address }: Spec, listener: DesiredListener): string {
  return `${transport(listener)} ${address} ${listener.port}`;
}

function transport(listener: DesiredListener): 'UDP' | 'TCP' {
  return listenerMode(listener) === 'udp' ? 'UDP' : 'TCP';
}

function inCircle(member: string, port: number): DriverError {
  return new DriverError(`traffic would go in a circle: ${member} leads back to port ${port}`, {
    customerMessage: `The member at ${member} leads back to the listener on port ${port}, and traffic would go in a circle.`,
    retryable: false,
  });
}
