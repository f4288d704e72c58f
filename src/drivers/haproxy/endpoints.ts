/**
 * Whether HAProxy will be able to listen, asked before it is told to: one address that cannot be bound makes it refuse
 * the configuration of everybody. HAProxy shares its ports (SO_REUSEPORT), so two load balancers on one would not fail
 * but get each other's connections; that is refused here, too.
 */
import { createServer } from 'node:net';
import { DriverError } from '../driver.ts';
import type { Rendered } from './configuration.ts';

export function endpointsOf({ endpoints, udpPorts, address }: Rendered): string[] {
  const udp = udpPorts.map((port) => `${address} ${port} UDP`);
  return [...[...endpoints.values()].map(({ address, port }) => `${address} ${port}`), ...udp];
}

/** `taken` tells who has an endpoint. @throws DriverError when another load balancer has one of these */
export function claimEndpoints(taken: Map<string, string>, rendered: Rendered): void {
  const own = endpointsOf(rendered);
  for (const endpoint of own) {
    const other = taken.get(endpoint);
    if (other === undefined || other === rendered.id) continue;
    throw new DriverError(`load balancer ${other} has ${endpoint} already`, {
      customerMessage: `Another load balancer listens on port ${endpoint.split(' ')[1]} of this address.`,
      retryable: false,
    });
  }
  for (const endpoint of own) taken.set(endpoint, rendered.id);
}

/** @throws DriverError when one of its endpoints cannot be bound; those that HAProxy holds already are not tried */
export async function refuseUnbindable({ endpoints }: Rendered, held = new Set<string>()): Promise<void> {
  for (const { address, port } of endpoints.values()) {
    if (!held.has(`${address} ${port}`)) await tryToListen(address, port);
  }
}

async function tryToListen(host: string, port: number): Promise<void> {
  const probe = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      probe.once('error', reject).listen({ host, port, exclusive: true }, resolve);
    });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const busy = code === 'EADDRINUSE';
    throw new DriverError(`nothing can listen on ${host} port ${port}: ${code}`, {
      customerMessage: busy
        ? `Port ${port} is taken by another program of the host.`
        : `The load balancer cannot listen on port ${port} of its address.`,
      retryable: busy,
      cause,
    });
  } finally {
    await new Promise((resolve) => probe.close(resolve));
  }
}
