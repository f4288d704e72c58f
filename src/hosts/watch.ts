/**
 * The hosts of a region as its worker sees them: for the start table, health, metrics and alerts. Read every few seconds, which
 * also ends leases that a dead host would keep after the clock of PostgreSQL was set back (distant-leases.ts).
 */
import type { DriverStatus } from '../platform/driver-status.ts';
import { createDistantLeases, type HostWatchOptions } from './distant-leases.ts';
import { type HostRow, hostsOfRegion, notServing } from './store.ts';

type SeenHost = Omit<HostRow, 'pendingChanges'>;

const pollMs = 2000;

/** Reads the hosts once, and then every 2 s. Failures keep the last result. @throws if the first read fails */
export async function startHostWatch(options: HostWatchOptions) {
  const { db, log, regionId } = options;
  let hosts = await hostsOfRegion(db, regionId);
  const endDistantLeases = createDistantLeases(options);
  const read = async () => {
    hosts = await hostsOfRegion(db, regionId);
    await endDistantLeases(hosts);
  };
  const timer = setInterval(() => {
    read().catch((error: unknown) => log.debug({ err: error }, 'cannot read the hosts of the region'));
  }, pollMs).unref();
  return {
    /** One status for each host, and one for each driver of a host. */
    statuses: (): DriverStatus[] => [
      ...hosts.map(statusOfHost),
      ...hosts
        .filter(({ leaseValid }) => leaseValid)
        .flatMap(({ name, report }) =>
          report.drivers.map((status) => ({ ...status, kind: `${status.kind} on ${name}` })),
        ),
    ],
    /** Of all hosts together: healthy if at least one serves. */
    statusOf(title: string): DriverStatus {
      const real = hosts.some(({ report }) => report.drivers.some((each) => each.kind === title && each.real));
      const serving = hosts.filter(({ leaseValid, converged }) => leaseValid && converged).map(({ name }) => name);
      const detail = serving.length === 0 ? 'no host serves' : `on ${serving.join(', ')}`;
      return { driver: 'hosts', real, healthy: serving.length > 0, detail };
    },
    stop: () => clearInterval(timer),
  };
}

export type HostWatch = Awaited<ReturnType<typeof startHostWatch>>;

function statusOfHost(host: SeenHost): DriverStatus {
  const healthy = host.leaseValid && !host.isStuck;
  return { driver: 'agent', kind: `host ${host.name}`, real: true, healthy, ...descriptionOf(host) };
}

/** One sentence, and the command that fixes it. */
function descriptionOf({ regionId, name, state, leaseValid, converged, isStuck, leaseSeconds }: SeenHost) {
  if (!leaseValid) {
    return {
      detail: `its lease ended ${Math.round(-leaseSeconds)} s ago`,
      remedy: `cloudyard host --region ${regionId}, or if it does not return: cloudyard host forget ${regionId} ${name}`,
    };
  }
  if (state !== 'active') return { detail: state, remedy: `cloudyard host undrain ${regionId} ${name}` };
  if (isStuck) return { detail: notServing, remedy: `journalctl -u cloudyard-host@${regionId}    # on ${name}` };
  return { detail: converged ? 'serves' : 'converges' };
}
