/** Records readings of the proxy: operating statuses every second, and traffic every ten seconds. */
import type { LoadBalancerDriver, LoadBalancerReading } from '../../drivers/load-balancer.ts';
import { DriverError } from '../../errors/driver-error.ts';
import type { Clock } from '../../platform/clock.ts';
import { type Db, transaction } from '../../platform/db.ts';
import { statusChanges } from './operating-status.ts';
import * as store from './store.ts';
import * as traffic from './traffic/store.ts';
import type { Duty } from '../../tasks/duties.ts';

interface LoadBalancerDutiesDeps {
  db: Db;
  clock: Clock;
  driver: LoadBalancerDriver;
  regionIds: number[];
}

/** Periodic work of each worker. */
export function createLoadBalancerDuties(deps: LoadBalancerDutiesDeps): Duty[] {
  return [
    { seconds: 1, work: createStatusRecorder(deps) },
    { seconds: 10, work: createTrafficRecorder(deps) },
    { seconds: 3600, work: () => traffic.removeOld(deps.db, deps.clock.now()) },
  ];
}

/** If the last response is older, all load balancers are reported as down. A reading of a proxy that hangs times out after 10 s. */
const maxSilenceMs = 1500;
/** Each time this number of scans has passed, load balancers that seem unchanged are compared, too. */
const scansUntilFull = 60;

/**
 * Scans the proxy and writes changed statuses. The rows of a load balancer are only read if its version or health differs
 * from the last scan: a region has thousands of members.
 */
export function createStatusRecorder({ db, driver, regionIds }: Omit<LoadBalancerDutiesDeps, 'clock'>) {
  const seen = new Map<string, string>();
  let scans = 0;
  let lastResponseAt = performance.now();

  return async (): Promise<void> => {
    const versions = await store.versions(db, regionIds);
    if (versions.size === 0) {
      lastResponseAt = performance.now();
      return seen.clear();
    }
    const found = await readProxy(driver);
    if (found) lastResponseAt = performance.now();
    else if (performance.now() - lastResponseAt < maxSilenceMs) return;
    if (scans++ % scansUntilFull === 0) seen.clear();
    const readings = new Map((found ?? []).map((reading) => [reading.id, reading]));
    const states = [...versions].map(([id, version]) => [id, `${version} ${healthOf(readings.get(id))}`] as const);
    const changed = states.filter(([id, state]) => seen.get(id) !== state);
    for (const id of seen.keys()) if (!versions.has(id)) seen.delete(id);
    if (changed.length === 0) return;
    const wholes = await store.wholesById(
      db,
      changed.map(([id]) => id),
    );
    const changes = wholes.flatMap((whole) => statusChanges(whole, readings.get(whole.loadBalancer.id)));
    if (changes.length > 0) await transaction(db, (tx) => store.writeStatuses(tx, changes));
    for (const [id, state] of changed) seen.set(id, state);
  };
}

/** Null if the proxy does not respond. Not logged at each call: the status of the driver reports it. */
async function readProxy(driver: LoadBalancerDriver): Promise<LoadBalancerReading[] | null> {
  return driver.read().catch((error: unknown) => {
    if (error instanceof DriverError) return null;
    throw error;
  });
}

/** The part of a reading that statuses depend on. */
function healthOf(reading: LoadBalancerReading | undefined): string {
  if (!reading) return '';
  return `${[...reading.members].join(' ')} ${[...reading.listeners.keys()].join(' ')}`;
}

/**
 * Adds the counters of listeners to their totals. Unchanged counters are only written while connections are open, because
 * each minute has its highest number of them.
 */
export function createTrafficRecorder({ db, clock, driver }: Omit<LoadBalancerDutiesDeps, 'regionIds'>) {
  let written = new Map<string, string>();
  return async (): Promise<void> => {
    const found = await readProxy(driver);
    if (!found) return;
    const readings = found.flatMap((reading) =>
      [...reading.listeners].map(([listenerId, counters]) => ({ listenerId, ...counters })),
    );
    const now = new Map(readings.map((reading) => [reading.listenerId, Object.values(reading).join(' ')]));
    const changed = readings.filter(
      ({ listenerId, activeConnections }) => activeConnections > 0 || written.get(listenerId) !== now.get(listenerId),
    );
    await traffic.addReadings(db, changed, clock.now());
    written = now;
  };
}
