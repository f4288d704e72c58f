/**
 * Checks again where members may be, because addresses of the host are added and removed. Only servers differ, so no reload
 * is needed.
 */
import { isDeepStrictEqual } from 'node:util';
import { renderBalancer } from './configuration.ts';
import { admitterFor, type Host, setAdmission, writeBalancers } from './host.ts';
import { syncServers, updateUdp } from './server-sync.ts';

/** Never rejects: `pending` has the load balancers that the next call tries again. */
export async function recheckMembers(host: Host, pending: Set<string>): Promise<void> {
  for (const id of readmit(host)) pending.add(id);
  const rendered = [...host.rendered.values()].filter(({ id }) => pending.has(id));
  if (rendered.length === 0) return pending.clear();
  try {
    await writeBalancers(host, rendered);
    host.probes.update();
    await syncServers(
      host,
      rendered.flatMap(({ pools }) => pools),
    );
    await updateUdp(host);
    pending.clear();
  } catch (err) {
    host.log.warn({ err }, 'cannot update members after a change of addresses');
  }
}

/** The ids of load balancers with newly omitted or newly served members. */
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
