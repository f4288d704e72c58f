/**
 * Members whose place has come to be refused, or allowed again, since their load balancer was applied: an address was
 * added to the host, or removed. Only servers differ, so nothing is reloaded.
 */
import { isDeepStrictEqual } from 'node:util';
import { renderBalancer } from './configuration.ts';
import { admitterFor, type Host, setAdmission, writeBalancers } from './host.ts';
import { syncServers, updateUdp } from './sync.ts';

/** Load balancers that HAProxy or nginx may not follow yet; never rejects, as the next call tries them again. */
export async function recheckMembers(host: Host, behind: Set<string>): Promise<void> {
  for (const id of readmit(host)) behind.add(id);
  const rendered = [...host.rendered.values()].filter(({ id }) => behind.has(id));
  if (rendered.length === 0) return behind.clear();
  try {
    await writeBalancers(host, rendered);
    host.probes.update();
    await syncServers(
      host,
      rendered.flatMap(({ pools }) => pools),
    );
    await updateUdp(host);
    behind.clear();
  } catch (err) {
    host.log.warn({ err }, 'members of load balancers cannot be taken out or put back yet');
  }
}

/** Asks again about every member; the ids of load balancers of which some are in now, or out. */
function readmit(host: Host): string[] {
  const admitOne = admitterFor(host, host.specs.values());
  return [...host.rendered.keys()].filter((id) => {
    const admission = admitOne(host.specs.get(id)!);
    if (isDeepStrictEqual(admission.refused, host.admitted.get(id)?.refused)) return false;
    setAdmission(host, id, admission);
    host.rendered.set(id, renderBalancer(admission.served, host.layout, host.settings.maxConnections));
    return true;
  });
}
