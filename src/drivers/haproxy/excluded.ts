/**
 * Serves load balancers that were excluded from a start because another program had one of their ports, as soon as it is
 * free. Those whose configuration HAProxy rejected stay excluded until they are changed.
 */
import { succeeds } from '../../platform/succeeds.ts';
import { DriverError } from '../driver.ts';
import { refuseUnbindable } from './endpoints.ts';
import { admitterFor, type Host, reloadEverything, renderSpec } from './host.ts';
import { syncServers, updateUdp } from './server-sync.ts';

/** @throws DriverError if the reload failed; then the load balancers stay excluded, and the next call tries again */
export async function serveExcluded(host: Host): Promise<void> {
  const waiting = [...host.broken].filter(([, reason]) => reason instanceof DriverError && reason.retryable);
  if (waiting.length === 0 || !host.process.isUp()) return;
  const admitOne = admitterFor(host, host.specs.values());
  const free: string[] = [];
  for (const [id] of waiting) {
    renderSpec(host, host.specs.get(id)!, admitOne);
    const rendered = host.rendered.get(id);
    if (!rendered) continue;
    if (await succeeds(refuseUnbindable(rendered))) free.push(id);
    else host.rendered.delete(id);
  }
  if (free.length === 0) return;
  try {
    host.probes.update();
    await reloadEverything(host);
    await syncServers(host);
    await updateUdp(host);
    for (const id of free) host.broken.delete(id);
    host.log.info({ loadBalancers: free }, 'serving load balancers whose ports are free again');
  } catch (err) {
    // Their files are removed before the next reload, which would be refused like this one.
    for (const id of free) {
      host.rendered.delete(id);
      host.unwritten.add(id);
    }
    throw err;
  }
}
