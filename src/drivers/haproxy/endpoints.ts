/**
 * Checks whether HAProxy can listen: with one address that cannot be bound it rejects the whole configuration. HAProxy
 * shares its ports (SO_REUSEPORT), so two load balancers on one port would get each other's connections.
 */
import { tryToListen } from '../ports.ts';
import type { Rendered } from './configuration.ts';
import { cannotListen, portConflict } from './errors.ts';

/** Where it listens: `<address> <port>`, with ` UDP` for UDP. */
export function endpointsOf({ endpoints, udpPorts, addresses }: Rendered): string[] {
  const udp = addresses.flatMap((address) => udpPorts.map((port) => `${address} ${port} UDP`));
  return [...[...endpoints.values()].flat().map(({ address, port }) => `${address} ${port}`), ...udp];
}

/** `taken` has the load balancers by endpoint. @throws DriverError if another load balancer has one of these */
export function claimEndpoints(taken: Map<string, string>, rendered: Rendered): void {
  const own = endpointsOf(rendered);
  for (const endpoint of own) {
    const other = taken.get(endpoint);
    if (other === undefined || other === rendered.id) continue;
    throw portConflict(other, endpoint);
  }
  for (const endpoint of own) taken.set(endpoint, rendered.id);
}

/** @throws DriverError if an endpoint cannot be bound. Endpoints in `held` are HAProxy's own and are not tried. */
export async function refuseUnbindable({ endpoints }: Rendered, held = new Set<string>()): Promise<void> {
  for (const { address, port } of [...endpoints.values()].flat()) {
    if (held.has(`${address} ${port}`)) continue;
    await tryToListen({ host: address, port, exclusive: true }).catch((cause: unknown) => {
      throw cannotListen(address, `port ${port}`, cause);
    });
  }
}
