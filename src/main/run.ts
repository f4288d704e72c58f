/**
 * The long-running commands: `start` (server and workers in one process), `serve` and `worker`. Each opens what it
 * needs in order, and on SIGINT or SIGTERM closes it in reverse. A `worker` that gets SIGTERM hands over: what serves users
 * goes on, for the next one to adopt, so that a restart of the worker stops nobody's traffic.
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
import { listen } from './listen.ts';
import { configurationFiles, createServices, readConfiguration } from './services.ts';
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
  /** The regions to work for; empty: none, `all`: every region of the file. */
  work: number[] | 'all';
}

/** Runs until a signal asks it to stop. @throws what keeps it from starting */
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
    await open(settings, roles, log, closing);
  } catch (error) {
    await close('stop');
    throw error;
  }
  const signal = await stopped;
  await close(signal === 'SIGTERM' && !roles.serve ? 'handOver' : 'stop');
}

async function open(settings: Settings, roles: Roles, log: Logger, closing: ShutdownSteps): Promise<void> {
  const configuration = readConfiguration(configurationFiles(settings), log);
  const known = configuration.regions.map((region) => region.id);
  const regionIds = roles.work === 'all' ? known : roles.work;
  const unknown = regionIds.filter((id) => !known.includes(id));
  if (unknown.length > 0) throw new Error(`there is no region ${unknown.join(', ')}; there are ${known.join(', ')}`);
  mkdirSync(settings.dataDir, { recursive: true });
  const database = await openDatabase(settings, log);
  closing.push(database.close);
  // Two servers on one data directory are a mistake; a second worker is a stand-by, and waits (see work.ts).
  const isStart = roles.serve && regionIds.length > 0;
  if (isStart) {
    const lock = await takeLocks(database.connection, [dataDirectoryLock(settings.dataDir)], log);
    closing.push(lock.release);
  }
  await migrate(database.connection);

  const db = database.connect('cloudyard api', settings.databasePoolSize);
  const keyring = openKeyFile(settings.keyFile);
  const movableClock = settings.development ? await openDevelopmentClock(db) : null;
  if (movableClock) closing.push(async () => movableClock.stop());
  const clock = movableClock ?? systemClock;
  const controlPlane = await findControlPlane(settings, log);
  const services = await createServices({
    ...settings,
    ...{ db, clock, movableClock, log, configuration, keyring, controlPlane },
    webhookAllowPrivate: settings.drivers.webhook.allowPrivate,
  });
  services.metrics.watchDatabase('api', db);
  closing.push(async () => services.caches.stop());
  // Also where the server never comes to listen: its connection would keep the database.
  closing.push(services.apiKeys.stop);
  await services.clients.bootstrap();

  // Drivers are told where the server listens, since it may have taken another port than the one that was asked for; but
  // nobody is answered before they are up, and the token is there.
  const { promise: holdUntil, resolve: letIn } = Promise.withResolvers<void>();
  const serves = roles.serve;
  const opening = openApi({ services, settings, controlPlane, serves, isStart, log, closing, holdUntil });
  const working =
    regionIds.length > 0
      ? startWork({
          ...{ settings, database, services, controlPlane, regionIds, log, closing },
          ownsDataDir: isStart,
          announced: opening,
        })
      : null;
  // Building the API keeps this thread busy, for seconds on a slow machine: connections begun before would time out.
  const notifying = opening.then(() => startNotifier({ settings, database, services, log, closing }));
  // All of them, also where one fails: whoever closes then finds what each of them opened.
  await Promise.allSettled([opening, working, notifying]);
  const [{ api, url }, work, deliveries] = await Promise.all([opening, working, notifying]);
  if (api) closing.push(async () => (services.taskViews.releaseWaiting(), api.close()));
  const token = await adminToken(services, settings);
  letIn();
  const loopbackRegions = configuration.regions.filter(({ member_networks: allowed }) => opensLoopback({ allowed }));
  printStart({
    ...{ settings, serves, url, token, database: database.description, work, deliveries },
    loopbackRegions: loopbackRegions.map(({ id }) => id),
  });
  setTimeout(forgetTheStart, settledMs).unref();
}

const settledMs = 5000;

/** Gives back what loading the modules took: an idle heap does not shrink by itself (docs/decisions/0010). */
function forgetTheStart(): void {
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

const announceSeconds = 3;

/** Listens, where this process is to, and tells the workers where. */
async function openApi(given: {
  services: Services;
  settings: Settings;
  controlPlane: ControlPlane;
  serves: boolean;
  isStart: boolean;
  log: Logger;
  closing: ShutdownSteps;
  holdUntil: Promise<void>;
}): Promise<{ api: App | null; url: string | null }> {
  const { services, settings, controlPlane, serves, isStart, log, closing, holdUntil } = given;
  if (!serves && settings.workerPort === 0) return { api: null, url: null };
  const { clientLimits, trustedProxies } = settings;
  const api = await createApi(services, { log, clientLimits, trustedProxies, resources: serves, holdUntil });
  const url = await listen(api, settings, serves);
  await controlPlane.add(serves ? 'API' : 'worker', url);
  if (serves) {
    services.metrics.watchApiKeys(services.apiKeys.cacheState);
    // A key file that is not there keeps nothing else from its work.
    const failed = (error: unknown) => log.error({ err: error }, 'the token server of registries has no keys');
    await services.registries.announce(url, isStart).catch(failed);
    const again = () => void services.registries.announce(url, false).catch(() => {});
    const timer = setInterval(again, announceSeconds * 1000);
    closing.push(async () => clearInterval(timer));
  }
  return { api, url };
}

/** The token to show: the operator's fixed one, or at the first start a new one; null when there is one already. */
async function adminToken(services: Services, settings: Settings): Promise<string | null> {
  const { operatorId } = await services.clients.bootstrap();
  if (!settings.bootstrapToken) return services.tokens.createFirst(operatorId);
  await services.tokens.setFixed(settings.bootstrapToken, operatorId);
  return settings.bootstrapToken;
}

const repeatedSignalMs = 1000;

/**
 * The first signal asks for an orderly stop, a later one ends the process at once. One that comes within a second is
 * the same one: whoever signals a whole process group reaches this process twice, through the launcher too.
 */
function untilSignal(log: Logger): Promise<'SIGINT' | 'SIGTERM'> {
  return new Promise((resolve) => {
    let askedAt: number | undefined;
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        const now = performance.now();
        if (askedAt !== undefined && now - askedAt > repeatedSignalMs) process.exit(130);
        if (askedAt !== undefined) return;
        askedAt = now;
        log.info({ signal }, 'stopping');
        resolve(signal);
      });
    }
  });
}
