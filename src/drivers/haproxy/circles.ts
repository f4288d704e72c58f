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

/** Listeners by their endpoints, with the spec that says where they lead. */
export type Fronts = Map<string, { spec: Spec; listener: DesiredListener }>;

/** Of all specs of a host: made once for many changes, as there may be thousands. */
export function frontsOf(specs: Iterable<Spec>): Fronts {
  const fronts: Fronts = new Map();
  for (const spec of specs) addFronts(fronts, spec);
  return fronts;
}

function addFronts(fronts: Fronts, spec: Spec): void {
  for (const listener of spec.listeners) fronts.set(endpointOf(spec, listener), { spec, listener });
}

/** Puts a spec in the place of another, unless that would close a circle. @throws DriverError */
export function replaceFronts(fronts: Fronts, before: Spec | undefined, after: Spec | undefined): void {
  for (const listener of before?.listeners ?? []) fronts.delete(endpointOf(before!, listener));
  if (!after) return;
  addFronts(fronts, after);
  try {
    refuseCircle(fronts, after);
  } catch (err) {
    replaceFronts(fronts, after, undefined);
    if (before) addFronts(fronts, before);
    throw err;
  }
}

function refuseCircle(fronts: Fronts, spec: Spec): void {
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
