/**
 * The worker's side of a process. One process at a time works for a region, because the region's data lies on its host;
 * another one stands by, and takes over when the first is gone, however it went.
 */
import { createFileShareReconciler } from '../resources/file-shares/reconcile.ts';
import { createLoadBalancerDuties, createLoadBalancerReconciler } from '../resources/load-balancers/reconcile.ts';
import type { DriverStatus } from '../platform/driver-status.ts';
import type { Logger } from '../platform/log.ts';
import type { Settings } from '../platform/settings.ts';
import type { Reconciler } from '../tasks/reconcile.ts';
import { startWorker } from '../tasks/worker.ts';
import type { WorkerOptions } from '../tasks/worker.ts';
import type { Database } from './database.ts';
import { allDrivers, startDrivers } from './drivers.ts';
import type { Drivers } from './drivers.ts';
import type { Closing } from './run.ts';
import type { Services } from './services.ts';
import { dataDirectoryLock, LockTaken, regionLock, takeLocks, waitForLocks } from './work-locks.ts';

export interface WorkDeps {
  settings: Settings;
  database: Database;
  services: Services;
  regionIds: number[];
  log: Logger;
  closing: Closing;
  /** Whether this process holds the data directory already. */
  ownsDataDir: boolean;
}

export type Work =
  | { standingBy: false; drivers: Record<string, DriverStatus> }
  /** In words: what is taken, and by whom. */
  | { standingBy: true; because: string };

/** Starts to work, or to stand by for it. @throws when a driver that is wanted cannot be started */
export async function startWork(deps: WorkDeps): Promise<Work> {
  const { settings, database, regionIds, log, closing } = deps;
  const locks = [
    ...(deps.ownsDataDir ? [] : [dataDirectoryLock(settings.dataDir)]),
    ...regionIds.map((id) => regionLock(id)),
  ];
  try {
    const held = await takeLocks(database.connection, locks, log);
    closing.push(held.release);
    return { standingBy: false, drivers: statusByKind(await work(deps)) };
  } catch (error) {
    if (!(error instanceof LockTaken)) throw error;
    standBy(deps, locks);
    return { standingBy: true, because: error.message };
  }
}

function standBy(deps: WorkDeps, locks: ReturnType<typeof regionLock>[]): void {
  const { database, log, closing, regionIds } = deps;
  const over = new AbortController();
  const waiting = waitForLocks(database.connection, locks, log, over.signal).then(async (held) => {
    if (!held) return;
    closing.push(held.release);
    log.info({ regionIds }, 'taking over');
    await work(deps).catch((error: unknown) => {
      log.fatal({ err: error }, 'taking over failed');
      process.kill(process.pid, 'SIGTERM');
    });
  });
  closing.push(async () => {
    over.abort();
    await waiting;
  });
}

async function work({ settings, database, services, regionIds, log, closing }: WorkDeps): Promise<Drivers> {
  const drivers = await startDrivers(settings, log);
  for (const driver of allDrivers(drivers)) closing.push(driver.stop);
  const db = database.connect('cloudyard worker', settings.workerConcurrency + 4);
  const { clock, tasks, metrics, idempotency, audit, apiKeys, reencrypt } = services;
  metrics.watchDatabase('worker', db);
  metrics.watchLoadBalancers(drivers.loadBalancer.counters);
  const worker = await startWorker({
    db,
    clock,
    tasks,
    log,
    regionIds,
    concurrency: settings.workerConcurrency,
    sweepSeconds: settings.sweepSeconds,
    reconcilers: createReconcilers({ ...services, db }, drivers),
    driverStatus: () => allDrivers(drivers).map((driver) => driver.status()),
    onDriverError: metrics.countDriverError,
    duties: [
      { seconds: 3600, work: () => idempotency.forget(db) },
      { seconds: 3600, work: reencrypt },
      { seconds: 3600, work: () => audit.forget(db) },
      { seconds: 3600, work: apiKeys.forget },
      ...createDuties({ clock, db }, drivers, regionIds),
    ],
  });
  closing.push(worker.stop);
  return drivers;
}

/** Every resource that is made real: one line each. */
export function createReconcilers(services: Services, drivers: Drivers): Reconciler[] {
  return [
    createFileShareReconciler({ ...services, driver: drivers.fileShare }),
    createLoadBalancerReconciler({ ...services, driver: drivers.loadBalancer, pemOf: services.secrets.pemOf }),
  ];
}

/** What drivers are looked at for, from time to time. */
export function createDuties(
  { clock, db }: Pick<Services, 'clock' | 'db'>,
  drivers: Drivers,
  regionIds: number[],
): NonNullable<WorkerOptions['duties']> {
  return createLoadBalancerDuties({ db, clock, driver: drivers.loadBalancer, regionIds });
}

function statusByKind(drivers: Drivers): Record<string, DriverStatus> {
  return { 'file shares': drivers.fileShare.status(), 'load balancers': drivers.loadBalancer.status() };
}
