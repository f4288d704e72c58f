/**
 * The worker's side of a process. One process at a time works for a region, because the region's data lies on its host;
 * another one stands by, and takes over when the first is gone, however it went.
 */
import { withFaults } from '../drivers/faults.ts';
import { createFileShareReconciler } from '../resources/file-shares/reconcile.ts';
import { createLifecyclePolicyDuties } from '../resources/lifecycle-policies/runs/reconcile.ts';
import { createLoadBalancerDuties, createLoadBalancerReconciler } from '../resources/load-balancers/reconcile.ts';
import { createRegistryDuties, createRegistryReconciler } from '../resources/registries/reconcile.ts';
import { announcedApi } from '../resources/registries/token-server/authority.ts';
import { createSnapshotReconciler } from '../resources/snapshots/reconcile.ts';
import { createVolumeReconciler } from '../resources/volumes/reconcile.ts';
import type { DriverStatus } from '../platform/driver-status.ts';
import type { Logger } from '../platform/log.ts';
import type { Settings } from '../platform/settings.ts';
import type { Reconciler } from '../tasks/reconcile.ts';
import { startWorker } from '../tasks/worker.ts';
import type { WorkerOptions } from '../tasks/worker.ts';
import type { Database } from './database.ts';
import type { ControlPlane } from './control-plane.ts';
import { allDrivers, startDrivers } from './drivers.ts';
import type { Drivers } from './drivers.ts';
import { egressFor } from './egress.ts';
import type { Egress } from './egress.ts';
import type { ShutdownSteps } from './shutdown.ts';
import type { Services } from './services.ts';
import { dataDirectoryLock, LockTaken, regionLock, takeLocks, waitForLocks } from './work-locks.ts';

export interface WorkDeps {
  settings: Settings;
  database: Database;
  services: Services;
  controlPlane: ControlPlane;
  regionIds: number[];
  log: Logger;
  closing: ShutdownSteps;
  /** Whether this process holds the data directory already. */
  ownsDataDir: boolean;
  /** Settled when the API server of this process listens and has said where. */
  announced: Promise<{ url: string | null }>;
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
    return { standingBy: false, drivers: (await work(deps))() };
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
      process.kill(process.pid, 'SIGINT');
    });
  });
  closing.push(async () => {
    over.abort();
    await waiting;
  });
}

/** Resolves with what tells the status of the drivers. */
async function work(deps: WorkDeps): Promise<() => Record<string, DriverStatus>> {
  const { settings, database, services, controlPlane, regionIds, log, closing, announced } = deps;
  await announced;
  await learnApi(deps).catch((error: unknown) => log.error({ err: error }, 'it is not known where the API listens'));
  const egress = egressFor(settings, controlPlane.ownPorts);
  closing.push(async (ending) => ending === 'stop' && egress?.remove());
  await egress?.apply();
  // A key file that is not there keeps nothing else from its work; the duty below tries again.
  const hosting = await services.registries.hosting(regionIds).catch((error: unknown) => {
    log.error({ err: error }, 'registries cannot be served');
    return null;
  });
  const drivers = withDevelopmentFaults(await startDrivers(settings, log, hosting, services.memberRules), services);
  for (const driver of allDrivers(drivers)) {
    closing.push((ending) => (ending === 'handOver' && driver.release ? driver.release() : driver.stop()));
  }
  // The accounts that the drivers have just created.
  await egress?.apply();
  const statuses = () => statusByKind(drivers, egress);
  const db = database.connect('cloudyard worker', settings.workerConcurrency + 4);
  const { tasks, metrics, idempotency, audit, apiKeys, reencrypt } = services;
  metrics.watchDatabase('worker', db);
  metrics.watchLoadBalancers(drivers.loadBalancer.counters);
  const worker = await startWorker({
    db,
    tasks,
    log,
    regionIds,
    concurrency: settings.workerConcurrency,
    slotsPerClient: settings.clientLimits.reconcileSlots,
    sweepSeconds: settings.sweepSeconds,
    reconcilers: createReconcilers({ ...services, db }, drivers),
    driverStatus: () => Object.entries(statuses()).map(([kind, status]) => ({ ...status, kind })),
    onDriverError: metrics.countDriverError,
    duties: [
      { seconds: 30, work: async () => egress?.apply() },
      { seconds: 3600, work: () => idempotency.deleteExpired(db) },
      { seconds: 3600, work: reencrypt },
      { seconds: 3600, work: () => audit.deleteExpired(db) },
      { seconds: 3600, work: apiKeys.forget },
      { seconds: settings.sweepSeconds, work: () => learnApi(deps).then(controlPlane.refresh) },
      ...createDuties({ ...services, db }, drivers, {
        regionIds,
        sweepSeconds: settings.sweepSeconds,
        registryPatienceSeconds: settings.registryPatienceSeconds,
        lookSeconds: services.development ? 0.05 : 0.25,
      }),
    ],
  });
  closing.push(worker.stop);
  return statuses;
}

/** Where the API server of another process listens, as far as one has announced itself. */
async function learnApi({ services, controlPlane }: Pick<WorkDeps, 'services' | 'controlPlane'>): Promise<void> {
  const url = await announcedApi(services.db);
  if (url !== null) await controlPlane.learn('API', url);
}

/** Every resource that is made real: one line each. */
export function createReconcilers(services: Services, drivers: Drivers): Reconciler[] {
  return [
    createFileShareReconciler({ ...services, driver: drivers.fileShare }),
    createLoadBalancerReconciler({ ...services, driver: drivers.loadBalancer, pemOf: services.secrets.pemOf }),
    createVolumeReconciler({ ...services, driver: drivers.volume }),
    createSnapshotReconciler({ ...services, driver: drivers.volume.snapshots }),
    createRegistryReconciler({ ...services, driver: drivers.registry }),
  ];
}

/** What drivers and clocks are looked at for, from time to time; for what is due, every `lookSeconds`. */
export function createDuties(
  services: Services,
  drivers: Drivers,
  times: Pick<Settings, 'sweepSeconds' | 'registryPatienceSeconds'> & { regionIds: number[]; lookSeconds: number },
): NonNullable<WorkerOptions['duties']> {
  const { clock, db, registries, notifications } = services;
  const { regionIds, sweepSeconds, registryPatienceSeconds: patience, lookSeconds } = times;
  const hosting = () => registries.hosting(regionIds);
  return [
    ...createLoadBalancerDuties({ db, clock, driver: drivers.loadBalancer, regionIds }),
    ...createLifecyclePolicyDuties({ ...services, notify: notifications.issue, regionIds, scanSeconds: lookSeconds }),
    ...createRegistryDuties({ db, driver: drivers.registry, regionIds, hosting, sweepSeconds, patience }),
  ];
}

/** In development mode, drivers fail as clients ask them to. */
export function withDevelopmentFaults(drivers: Drivers, { development }: Pick<Services, 'development'>): Drivers {
  if (!development) return drivers;
  const { takeFault } = development;
  return {
    fileShare: withFaults(drivers.fileShare, 'file_share', takeFault),
    loadBalancer: withFaults(drivers.loadBalancer, 'load_balancer', takeFault),
    volume: withFaults(drivers.volume, 'volume', takeFault, { snapshots: 'snapshot' }),
    // What a client asks of a registry is a row; its driver only removes, and tries that again until it is done.
    registry: drivers.registry,
  };
}

function statusByKind(drivers: Drivers, egress: Egress | null): Record<string, DriverStatus> {
  const loadBalancers = drivers.loadBalancer.status();
  return {
    'file shares': drivers.fileShare.status(),
    'load balancers': egress?.annotate(loadBalancers) ?? loadBalancers,
    volumes: drivers.volume.status(),
    registries: drivers.registry.status(),
  };
}
