/**
 * Requests in progress, from `show sess` of all workers: HTTP connections are listed while they have a request, TCP
 * connections always.
 */
import { addressesOf } from '../load-balancer.ts';
import { listenerName } from './configuration.ts';
import type { Host } from './host.ts';

/** The number of requests in progress at these addresses. */
export async function activeRequests({ specs, process }: Host, addresses: ReadonlySet<string>): Promise<number> {
  const frontends = new Set(
    [...specs.values()]
      .filter((spec) => addressesOf(spec).some((address) => addresses.has(address)))
      .flatMap(({ listeners }) => listeners.map(({ id }) => listenerName(id))),
  );
  const old = await process.oldWorkers();
  const answers = await Promise.all([
    process.ask(['show sess']),
    ...old.map((pid) => process.askOldWorker(pid, ['show sess'])),
  ]);
  const found = answers.flatMap((text) => [...text.matchAll(/^0x\w+: proto=\S+ src=\S+ fe=(\S+) /gm)]);
  return found.filter(([, frontend = '']) => frontends.has(frontend)).length;
}
