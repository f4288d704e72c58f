/**
 * The long-running commands: `start` (server and workers in one process), `serve` and `worker`. Each opens what it
 * needs in order, and on SIGINT or SIGTERM closes it in reverse.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createFileShareReconciler } from '../resources/file-shares/reconcile.ts';
import { systemClock } from '../platform/clock.ts';
import { createLogger } from '../platform/log.ts';
import type { Logger } from '../platform/log.ts';
import type { Settings } from '../platform/settings.ts';
import { startWorker } from '../tasks/worker.ts';
import type { Reconciler } from '../tasks/reconcile.ts';
import { createApi } from './api.ts';
import { migrate, openDatabase } from './database.ts';
import { allDrivers, startDrivers } from './drivers.ts';
import type { Drivers } from './drivers.ts';
import { lockDataDirectory } from './host-lock.ts';
import { listen } from './listen.ts';
import { root } from './root.ts';
import { createServices, readConfiguration } from './services.ts';
import type { Services } from './services.ts';
import { printStart } from './start-table.ts';

export interface Roles {
  serve: boolean;
  /** The regions to work for; empty: none, `all`: every region of the file. */
  work: number[] | 'all';
}

/** Runs until a signal asks it to stop. @throws what keeps it from starting */
export async function run(settings: Settings, roles: Roles): Promise<void> {
  const log = createLogger({ level: settings.logLevel, pretty: settings.logFormat === 'pretty' });
  const closing: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const step of closing.splice(0).reverse()) {
      await step().catch((error: unknown) => log.error({ err: error }, 'a part did not stop cleanly'));
    }
  };
  const stopped = untilSignal(log);
  try {
    await open(settings, roles, log, closing);
  } catch (error) {
    await close();
    throw error;
  }
  await stopped;
  await close();
}

async function open(settings: Settings, roles: Roles, log: Logger, closing: (() => Promise<unknown>)[]): Promise<void> {
  mkdirSync(settings.dataDir, { recursive: true });
  const configuration = readConfiguration(configurationFiles(settings), log);
  const database = await openDatabase(settings, log);
  closing.push(database.close);
  const works = roles.work === 'all' || roles.work.length > 0;
  if (works) {
    const lock = await lockDataDirectory(database.connection, settings.dataDir, log);
    closing.push(lock.release);
  }
  await migrate(database.connection);

  const db = database.connect('cloudyard api', settings.databasePoolSize);
  const services = await createServices({ db, clock: systemClock, log, configuration });
  services.metrics.watchDatabase(db);
  closing.push(async () => services.caches.stop());
  const token = await bootstrap(services, settings);

  const [api, drivers] = await Promise.all([
    roles.serve || settings.workerPort > 0
      ? createApi(services, { log, rateLimit: settings.rateLimit, resources: roles.serve })
      : null,
    works ? startDrivers(settings, log) : null,
  ]);
  if (drivers) {
    for (const driver of allDrivers(drivers)) closing.push(driver.stop);
    const workerDb = database.connect('cloudyard worker', settings.workerConcurrency + 4);
    const regionIds = roles.work === 'all' ? configuration.regions.map((region) => region.id) : roles.work;
    const worker = await startRegionWorker({ ...services, db: workerDb }, drivers, regionIds, settings, log);
    closing.push(worker.stop);
  }
  const url = api && (await listen(api, settings, roles.serve));
  if (api) closing.push(async () => (services.taskViews.releaseWaiting(), api.close()));
  printStart({ settings, url, token, database: database.description, drivers });
}

async function startRegionWorker(
  services: Services,
  drivers: Drivers,
  regionIds: number[],
  settings: Settings,
  log: Logger,
) {
  const { db, clock, tasks, metrics, idempotency } = services;
  return startWorker({
    db,
    clock,
    tasks,
    log,
    regionIds,
    concurrency: settings.workerConcurrency,
    sweepSeconds: settings.sweepSeconds,
    reconcilers: createReconcilers(services, drivers),
    driverStatus: () => allDrivers(drivers).map((driver) => driver.status()),
    onDriverError: metrics.countDriverError,
    duties: [{ seconds: 3600, work: () => idempotency.forget(db) }],
  });
}

/** Every resource that is made real: one line each. */
export function createReconcilers(services: Services, drivers: Drivers): Reconciler[] {
  return [createFileShareReconciler({ ...services, driver: drivers.fileShare })];
}

/** Makes the operator's client at the first start. Returns the admin token when there is one to show. */
export async function bootstrap(services: Services, settings: Settings): Promise<string | null> {
  const { operatorId, token } = await services.clients.bootstrap();
  if (settings.bootstrapToken) await services.tokens.fix(settings.bootstrapToken, operatorId);
  return settings.bootstrapToken ?? token;
}

export function configurationFiles(settings: Settings): { regions: string; quotas: string } {
  return {
    regions: settings.regionsFile ?? join(root, 'config', 'regions.yaml'),
    quotas: settings.quotasFile ?? join(root, 'config', 'quotas.yaml'),
  };
}

/** The first signal asks for an orderly stop; the second ends the process at once. */
function untilSignal(log: Logger): Promise<void> {
  return new Promise((resolve) => {
    let asked = false;
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        if (asked) process.exit(130);
        asked = true;
        log.info({ signal }, 'stopping');
        resolve();
      });
    }
  });
}
