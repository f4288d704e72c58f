/**
 * Checks again where members may be, because addresses of the host are added and removed, and restores configuration files and
 * servers that something else changed. Only servers differ, so no reload is needed.
 */
import { isDeepStrictEqual } from 'node:util';
import { renderBalancer } from './configuration.ts';
import { admitterFor, type Host, restoreGlobal, setAdmission, writeBalancers } from './host.ts';
import { syncServers, updateUdp } from './server-sync.ts';

/** Never rejects: the next call tries again. */
export async function recheckMembers(host: Host): Promise<void> {
  try {
    readmit(host);
    await restoreGlobal(host);
    await writeBalancers(host, host.rendered.values());
    host.probes.update();
    await syncServers(host);
    await updateUdp(host);
  } catch (err) {
    host.log.warn({ err }, 'cannot compare the members with HAProxy and nginx yet');
  }
}

/** Omits and serves members as they are allowed now. */
function readmit(host: Host): void {
  const admitOne = admitterFor(host, host.specs.values());
  for (const id of host.rendered.keys()) {
    const admission = admitOne(host.specs.get(id)!);
    if (isDeepStrictEqual(admission.refused, host.admitted.get(id)?.refused)) continue;
    setAdmission(host, id, admission);
    host.rendered.set(id, renderBalancer(admission.served, host.layout, host.settings.maxConnections));
  }
}
