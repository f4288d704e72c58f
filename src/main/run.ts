/**
 * The long-running commands: `start` (server and workers in one process), `serve` and `worker`. Each opens its parts in
 * order, and closes them in reverse on SIGINT or SIGTERM. A `worker` that receives SIGTERM hands over: the programs that
 * serve users keep running and the next worker adopts them, so that a restart does not interrupt traffic.
 */
import { mkdirSync } from 'node:fs';
import { systemClock } from '../platform/clock.ts';
import { openDevelopmentClock } from '../platform/development-clock.ts';
import { openKeyFile } from '../platform/encryption.ts';
import { createLogger } from '../platform/log.ts';
import type { Logger } from '../platform/log.ts';
import { opensLoopback } from '../platform/member-networks.ts';
import type { App } from '../http/app.ts';
import { createApi } from './api.ts';
import { findControlPlane } from './control-plane.ts';
import type { ControlPlane } from './control-plane.ts';
import { migrate, openDatabase } from './database.ts';
import type { Database } from './database.ts';
import { listen } from './listen.ts';
import { configurationFiles, readConfiguration } from './configuration.ts';
import type { Configuration } from './configuration.ts';
import { createServices } from './services.ts';
import type { Services } from './services.ts';
import { startNotifier } from './notifier.ts';
import type { Settings } from './settings.ts';
import type { Ending, ShutdownSteps } from './shutdown.ts';
import { printStart } from './start-table.ts';
import { version } from './version.ts';
import { startWork } from './work.ts';
import { dataDirectoryLock, takeLocks } from './work-locks.ts';

export interface Roles {
  serve: boolean;
  /** The regions to work for; empty: none, `all`: every region in the regions file. */
  work: number[] | 'all';
}

/** What `openServices` opens, and what every other part is started with. */
interface Opened {
  settings: Settings;
  log: Logger;
  closing: ShutdownSteps;
  configuration: Configuration;
  regionIds: number[];
  serves: boolean;
  /** Whether this is `start`, which owns its data directory. */
  isStart: boolean;
  database: Database;
  controlPlane: ControlPlane;
  services: Services;
}

/** Runs until a signal stops it. @throws if it cannot start */
export async function run(settings: Settings, roles: Roles): Promise<void> {
  const log = createLogger({ level: settings.logLevel, pretty: settings.logFormat === 'pretty' });
  log.info({ version, node: process.version }, 'starting');
  const closing: ShutdownSteps = [];
  const close = async (ending: Ending) => {
    for (const step of closing.splice(0).reverse()) {
      await step(ending).catch((error: unknown) => log.error({ err: error }, 'a part did not stop cleanly'));
    }
  };
  const stopped = untilSignal(log);
  try {
    await startParts(await openServices(settings, roles, log, closing));
  } catch (error) {
    await close('stop');
    throw error;
  }
  const signal = await stopped;
  await close(signal === 'SIGTERM' && !roles.serve ? 'handOver' : 'stop');
}

/** Opens the database, migrates it, and creates the services. */
async function openServices(settings: Settings, roles: Roles, log: Logger, closing: ShutdownSteps): Promise<Opened> {
  const configuration = readConfiguration(configurationFiles(settings), log);
  const regionIds = regionsToWorkFor(roles, configuration);
  mkdirSync(settings.dataDir, { recursive: true });
  const database = await openDatabase(settings, log);
  closing.push(database.close);
  // A second `start` on a data directory is a mistake and fails here. A second worker is a standby (work.ts).
  const isStart = roles.serve && regionIds.length > 0;
  if (isStart) {
    const lock = await takeLocks(database.connection, [dataDirectoryLock(settings.dataDir)], log);
    closing.push(lock.release);
  }
  await migrate(database.connection);

  const db = database.connect('cloudyard api', settings.databasePoolSize);
  const keyring = openKeyFile(settings.keyFile);
  const keyProblem = keyring.findProblem();
  if (keyProblem !== null) throw new Error(keyProblem);
  const movableClock = settings.development ? await openDevelopmentClock(db) : null;
  if (movableClock) closing.push(async () => movableClock.stop());
  const controlPlane = await findControlPlane(settings, log);
  const services = await createServices({
    ...settings,
    ...{ db, clock: movableClock ?? systemClock, movableClock, log, configuration, keyring, controlPlane },
    webhookAllowPrivate: settings.drivers.webhook.allowPrivate,
  });
  services.metrics.watchDatabase('api', db);
  closing.push(async () => services.caches.stop());
  // Needed even if the server never listens: its connection would keep the database open.
  closing.push(services.apiKeys.stop);
  await services.clients.bootstrap();
  const opened = { settings, log, closing, configuration, regionIds, serves: roles.serve, isStart };
  return { ...opened, database, controlPlane, services };
}

function regionsToWorkFor({ work }: Roles, { regions }: Configuration): number[] {
  const known = regions.map(({ id }) => id);
  if (work === 'all') return known;
  const unknown = work.filter((id) => !known.includes(id));
  if (unknown.length === 0) return work;
  throw new Error(`region ${unknown.join(', ')} is not in the regions file, which has ${known.join(', ')}`);
}

/** Starts the API server, the worker and the notifier, and prints the start table. */
async function startParts(opened: Opened): Promise<void> {
  const { settings, log, closing, configuration, regionIds, serves, isStart, database, services } = opened;
  // Drivers need the port of the API server, which may differ from the setting, so it listens before they start. Requests
  // are held until the drivers run and the token exists.
  const { promise: holdUntil, resolve: admitRequests } = Promise.withResolvers<void>();
  const opening = openApi(opened, holdUntil);
  const working = regionIds.length > 0 ? startWork({ ...opened, ownsDataDir: isStart, announced: opening }) : null;
  // Building the API blocks the event loop, for seconds on a slow machine: earlier connections would time out.
  const notifying = opening.then(() => startNotifier({ settings, database, services, log, closing }));
  // Wait for all of them even if one fails, so that every part that was opened has added its shutdown step.
  await Promise.allSettled([opening, working, notifying]);
  const [{ api, url }, work, deliveries] = await Promise.all([opening, working, notifying]);
  if (api) closing.push(() => closeApi(api, services));
  const token = await adminToken(services, settings);
  admitRequests();
  const loopbackRegions = configuration.regions.filter(({ member_networks: allowed }) => opensLoopback({ allowed }));
  printStart({
    ...{ settings, serves, url, token, database: database.description, work, deliveries },
    loopbackRegions: loopbackRegions.map(({ id }) => id),
  });
  setTimeout(() => void settle(api, log), startupSettledMs).unref();
}

/** Answers the requests that were read, and closes the server. */
async function closeApi(api: App, services: Services): Promise<void> {
  services.taskViews.releaseWaiting();
  await api.drain.drain();
  await api.close();
}

const startupSettledMs = 5000;

/**
 * Compiles the shapes that no request has used yet, and returns the memory that loading the modules took: an idle heap does
 * not shrink by itself (docs/decisions/0010).
 */
async function settle(api: App | null, log: Logger): Promise<void> {
  await api?.compileShapes().catch((error: unknown) => log.error({ err: error }, 'a shape cannot be compiled'));
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

const announceSeconds = 3;

/** Listens, and announces the URL to the workers. A process that is only a worker serves health and metrics. */
async function openApi(opened: Opened, holdUntil: Promise<void>): Promise<{ api: App | null; url: string | null }> {
  const { services, settings, controlPlane, serves, isStart, log, closing } = opened;
  if (!serves && settings.workerPort === 0) return { api: null, url: null };
  const { clientLimits, trustedProxies } = settings;
  const api = await createApi(services, { log, clientLimits, trustedProxies, resources: serves, holdUntil });
  const url = await listen(api, settings, serves);
  await controlPlane.add(serves ? 'API' : 'worker', url);
  if (serves) {
    services.metrics.watchApiKeys(services.apiKeys.cacheState);
    // A missing key file affects registries only.
    const failed = (error: unknown) => log.error({ err: error }, 'the token server of registries has no keys');
    await services.registries.announce(url, isStart).catch(failed);
    const announce = () => void services.registries.announce(url, false).catch(() => {});
    const timer = setInterval(announce, announceSeconds * 1000);
    closing.push(async () => clearInterval(timer));
  }
  return { api, url };
}

/** The token to print: CLOUDYARD_BOOTSTRAP_TOKEN, or a new one at the first start; null if one exists already. */
async function adminToken(services: Services, settings: Settings): Promise<string | null> {
  const { operatorId } = await services.clients.bootstrap();
  if (!settings.bootstrapToken) return services.tokens.createFirst(operatorId);
  await services.tokens.setFixed(settings.bootstrapToken, operatorId);
  return settings.bootstrapToken;
}

const repeatedSignalMs = 1000;

/**
 * The first signal starts an orderly stop; a later one ends the process at once. A signal within a second counts as the
 * same one: a signal to the process group reaches this process twice, directly and through the launcher.
 */
function untilSignal(log: Logger): Promise<'SIGINT' | 'SIGTERM'> {
  return new Promise((resolve) => {
    let firstAt: number | undefined;
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        const now = performance.now();
        if (firstAt !== undefined && now - firstAt > repeatedSignalMs) process.exit(130);
        if (firstAt !== undefined) return;
        firstAt = now;
        log.info({ signal }, 'stopping');
        resolve(signal);
      });
    }
  });
}
