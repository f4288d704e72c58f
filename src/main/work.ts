/**
 * The worker of a process. One process at a time works for a region, because the data of the region is on its host. Another
 * process for the region is a standby (standby.ts): it fails over when the first process ends or crashes.
 */
import { hostname } from 'node:os';
import { ensureFilterIndex } from '../audit/filter-index.ts';
import { withFaults } from '../drivers/faults.ts';
import type { Drivers } from '../drivers/kinds.ts';
import { endDriver } from '../drivers/restarting.ts';
import { daysBefore } from '../platform/clock.ts';
import { diskStatus } from '../platform/disk-space.ts';
import type { DriverStatus } from '../platform/driver-status.ts';
import type { Db } from '../platform/db.ts';
import { timeZoneStatus } from '../platform/time-zone.ts';
import { type ResourceDrivers, resources, type WorkServices } from '../resources/list.ts';
import type { Resource } from '../resources/resource.ts';
import type { Duty } from '../tasks/duties.ts';
import type { Reconciler } from '../tasks/reconcile.ts';
import type { Tracer } from '../platform/tracing/tracer.ts';
import { removeOldNotifications } from '../resources/notifications/retention.ts';
import { removeEndedTasks } from '../tasks/retention.ts';
import { tracedDriver, tracedReconciler } from '../tasks/traced.ts';
import { startWorker } from '../tasks/worker.ts';
import { addServersAtStart, refreshControlPlane } from './announced-servers.ts';
import { createDriverContext } from './driver-context.ts';
import { driverStatuses, startDrivers } from './drivers.ts';
import { openEgress } from './egress.ts';
import { createHostAlert } from './host-alert.ts';
import type { Opened } from './open-services.ts';
import { startPublishedDrivers } from './published-drivers.ts';
import type { Services } from './services.ts';
import type { ShutdownSteps } from './shutdown.ts';
import { hostedRegionOf } from './several-hosts.ts';
import { startStandby } from './standby.ts';
import { dataDirectoryLock, LockTaken, regionLock, takeLocks } from './work-locks.ts';

export interface WorkDeps extends Opened {
  /** Settled when the API server of this process listens and has announced its URL. */
  announced: Promise<unknown>;
}

/** What a worker or an agent does after its start. */
export type Work =
  | { standby: false; drivers: Record<string, DriverStatus> }
  /** Which lock is taken, and by which process. */
  | { standby: true; reason: string };

const housekeepingSeconds = 3600;
const egressSeconds = 30;
const filterIndexSeconds = 30;
const alertSeconds = 10;
const spareConnections = 4;
const pollSeconds = 0.25;
/** While a client moves the clock of development mode, which waits for what becomes due. */
const movingPace = 25;

/** Starts the worker, or a standby if another process has the locks. @throws when a required driver cannot start */
export async function startWork(deps: WorkDeps): Promise<Work> {
  const { settings, database, regionIds, log, closing } = deps;
  // The worker of a region of several hosts keeps nothing on its host; an agent may use the data directory.
  // `start` has taken the lock of its data directory already.
  const locksDataDir = !deps.isStart && !hostedRegionOf(deps);
  const locks = [...(locksDataDir ? [dataDirectoryLock(settings.dataDir)] : []), ...regionIds.map(regionLock)];
  try {
    const held = await takeLocks(database.connection, locks, log);
    closing.push(held.release);
    return { standby: false, drivers: await runWorker(deps) };
  } catch (error) {
    if (!(error instanceof LockTaken)) throw error;
    const { connection } = database;
    const startInStandby = (opened: ShutdownSteps) => runWorker({ ...deps, closing: opened });
    closing.push(startStandby({ connection, locks, log, work: startInStandby }));
    return { standby: true, reason: error.message };
  }
}

/** Starts the drivers and the worker. Returns the status of the drivers. */
async function runWorker(deps: WorkDeps): Promise<Record<string, DriverStatus>> {
  const { settings, database, services, controlPlane, regionIds, log, closing, tracer } = deps;
  const { drivers, egress, statuses, hostStatuses } = await startRegionDrivers(deps);
  const db = database.connect('cloudyard worker', settings.workerConcurrency + spareConnections);
  const { tasks, wakeups, clock, metrics, development } = services;
  metrics.watchDatabase('worker', db);
  metrics.watchDisk(() => diskStatus(settings.dataDir, settings.diskReserve));
  metrics.watchLoadBalancers(drivers.loadBalancer.counters);
  const { sweepSeconds } = settings;
  const { reconcilers, duties } = createWork(
    {
      ...services,
      db,
      regionIds,
      sweepSeconds,
      pollSeconds,
      driverSettings: settings.drivers,
    },
    drivers,
    development,
    tracer && { tracer, db },
  );
  const { operatorId } = await services.clients.bootstrap();
  const alert = createHostAlert({
    ...{ db, regionIds, operatorId, host: hostname(), notifications: services.notifications },
    ...{ statuses: hostStatuses, now: () => performance.now() },
  });
  const worker = await startWorker({
    db,
    tasks,
    wakeups,
    clock,
    log,
    regionIds,
    concurrency: settings.workerConcurrency,
    slotsPerClient: settings.clientLimits.reconcileSlots,
    sweepSeconds,
    dutyPace: () => (development?.isMoving() ? movingPace : 1),
    reconcilers,
    driverStatus: () => [...hostStatuses(), timeZoneStatus()],
    onDriverError: metrics.countDriverError,
    onJobEnd: metrics.countJobEnd,
    duties: [
      { seconds: egressSeconds, work: async () => egress?.apply() },
      ...housekeeping(deps, db),
      { seconds: alertSeconds, work: alert },
      { seconds: sweepSeconds, work: () => refreshControlPlane(controlPlane, services.db) },
      ...duties,
    ],
  });
  closing.push(worker.stop);
  return statuses();
}

/** Starts the drivers of the regions, and the egress filter of their programs. They end with `closing`. */
async function startRegionDrivers(deps: WorkDeps) {
  const { settings, closing } = deps;
  await addServersAtStart(deps);
  const region = hostedRegionOf(deps);
  const egress = region ? null : await openEgress(deps);
  const context = await createDriverContext(deps);
  const published = region && (await startPublishedDrivers({ ...deps, region, context }));
  const drivers: Drivers = published?.drivers ?? (await startDrivers(settings, context));
  for (const driver of Object.values(drivers)) closing.push((mode) => endDriver(driver, mode));
  // The drivers have just created the accounts that the filter applies to.
  await egress?.apply();
  const statuses = () => driverStatuses(drivers, egress?.annotate);
  /** Also of the data directory, and of the other hosts of the region. */
  const hostStatuses = () => [
    ...Object.entries(statuses()).map(([kind, status]) => ({ ...status, kind })),
    diskStatus(settings.dataDir, settings.diskReserve),
    ...(published?.hosts.statuses() ?? []),
  ];
  return { drivers, egress, statuses, hostStatuses };
}

/** The duties that belong to no resource. */
function housekeeping(deps: WorkDeps, db: Db): Duty[] {
  const { idempotency, audit, reencrypt } = deps.services;
  return [
    { seconds: housekeepingSeconds, work: () => idempotency.deleteExpired(db) },
    { seconds: housekeepingSeconds, work: reencrypt },
    { seconds: housekeepingSeconds, work: (signal) => audit.deleteExpired(db, signal) },
    { seconds: housekeepingSeconds, work: (signal) => removeOld(deps, db, signal) },
    { seconds: filterIndexSeconds, work: () => ensureFilterIndex(db) },
  ];
}

/**
 * Removes ended tasks, notifications and tokens of sign-ins after their retention. A token stays as long as the entries of
 * the audit log, which show its name.
 */
async function removeOld({ settings, services }: WorkDeps, db: Db, signal: AbortSignal): Promise<void> {
  const before = (days: number) => daysBefore(services.clock.now(), days);
  if (settings.taskDays > 0) await removeEndedTasks(db, before(settings.taskDays), signal);
  if (settings.auditDays > 0) await services.tokens.removeEndedSignIns(before(settings.auditDays), signal);
  if (settings.notificationDays > 0) await removeOldNotifications(db, before(settings.notificationDays), signal);
}

/**
 * The reconcilers and duties of all resources. In development mode (`development` is not null) their drivers fail as
 * clients request.
 */
export function createWork(
  services: WorkServices,
  drivers: ResourceDrivers,
  development: Services['development'],
  traces: { tracer: Tracer; db: Db } | null = null,
): { reconcilers: Reconciler[]; duties: Duty[] } {
  const driverOf = ({ driver: select, faults }: Resource): object | undefined => {
    const driver = select?.(drivers as never);
    if (!driver) return undefined;
    const traced = traces ? tracedDriver(driver, traces.tracer) : driver;
    return development && faults !== undefined ? withFaults(traced, faults, development.takeFault) : traced;
  };
  // Each resource gets what its functions declare: `WorkServices` and `ResourceDrivers` collect the types (list.ts).
  const given = services as never;
  const all = resources.map((resource) => ({ ...resource, driver: driverOf(resource) as never }));
  return {
    reconcilers: all
      .flatMap(({ reconciler, driver }) => reconciler?.(given, driver) ?? [])
      .map((each) => (traces ? tracedReconciler(each, traces.tracer, traces.db) : each)),
    duties: all.flatMap(({ duties, driver }) => duties?.(given, driver) ?? []),
  };
}
