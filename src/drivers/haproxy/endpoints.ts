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

/** @throws DriverError when another load balancer has one of its endpoints */
export function refuseTaken(rendered: Rendered, others: Iterable<Rendered>): void {
  const own = new Set(endpointsOf(rendered));
  if (own.size === 0) return;
  for (const other of others) {
    const taken = other.id === rendered.id ? undefined : endpointsOf(other).find((each) => own.has(each));
    if (!taken) continue;
    throw new DriverError(`load balancer ${other.id} has ${taken} already`, {
      customerMessage: `Another load balancer listens on port ${taken.split(' ')[1]} of this address.`,
      retryable: false,
    });
  }
}

/** @throws DriverError when one of them cannot be bound; those that we hold already are left out by the caller */
export async function refuseUnbindable(endpoints: { address: string; port: number }[]): Promise<void> {
  for (const { address, port } of endpoints) await tryToListen(address, port);
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
