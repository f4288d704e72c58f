/**
 * The long-running commands: `start` (server and workers in one process), `serve` and `worker`. Each opens what it
 * needs in order, and on SIGINT or SIGTERM closes it in reverse.
 */
import { mkdirSync } from 'node:fs';
import { systemClock } from '../platform/clock.ts';
import { openKeyFile } from '../platform/encryption.ts';
import { createLogger } from '../platform/log.ts';
import type { Logger } from '../platform/log.ts';
import type { Settings } from '../platform/settings.ts';
import { createApi } from './api.ts';
import { migrate, openDatabase } from './database.ts';
import { listen } from './listen.ts';
import { configurationFiles, createServices, readConfiguration } from './services.ts';
import type { Services } from './services.ts';
import { printStart } from './start-table.ts';
import { startWork } from './work.ts';
import { dataDirectoryLock, takeLocks } from './work-locks.ts';

export interface Roles {
  serve: boolean;
  /** The regions to work for; empty: none, `all`: every region of the file. */
  work: number[] | 'all';
}

/** What is to be done at the end, last opened first. */
export type Closing = (() => Promise<unknown>)[];

/** Runs until a signal asks it to stop. @throws what keeps it from starting */
export async function run(settings: Settings, roles: Roles): Promise<void> {
  const log = createLogger({ level: settings.logLevel, pretty: settings.logFormat === 'pretty' });
  const closing: Closing = [];
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

async function open(settings: Settings, roles: Roles, log: Logger, closing: Closing): Promise<void> {
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
  const { auditDays, verifyNetworks } = settings;
  const given = { configuration, keyring, auditDays, verifyNetworks };
  const services = await createServices({ db, clock: systemClock, log, ...given });
  services.metrics.watchDatabase('api', db);
  closing.push(async () => services.caches.stop());
  // Also where the server never comes to listen: its connection would keep the database.
  closing.push(services.apiKeys.stop);
  await services.clients.bootstrap();

  const [api, work] = await Promise.all([
    roles.serve || settings.workerPort > 0
      ? createApi(services, { log, rateLimit: settings.rateLimit, resources: roles.serve })
      : null,
    regionIds.length > 0
      ? startWork({ settings, database, services, regionIds, log, closing, ownsDataDir: isStart })
      : null,
  ]);
  const url = api && (await listen(api, settings, roles.serve));
  if (api) closing.push(async () => (services.taskViews.releaseWaiting(), api.close()));
  const token = await adminToken(services, settings);
  printStart({ settings, serves: roles.serve, url, token, database: database.description, work });
}

/** The token to show: the operator's fixed one, or at the first start a new one; null when there is one already. */
async function adminToken(services: Services, settings: Settings): Promise<string | null> {
  const { operatorId } = await services.clients.bootstrap();
  if (!settings.bootstrapToken) return services.tokens.createFirst(operatorId);
  await services.tokens.fix(settings.bootstrapToken, operatorId);
  return settings.bootstrapToken;
}

const repeatedSignalMs = 1000;

/**
 * The first signal asks for an orderly stop, a later one ends the process at once. One that comes within a second is
 * the same one: whoever signals a whole process group reaches this process twice, through the launcher too.
 */
function untilSignal(log: Logger): Promise<void> {
  return new Promise((resolve) => {
    let askedAt: number | undefined;
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        const now = performance.now();
        if (askedAt !== undefined && now - askedAt > repeatedSignalMs) process.exit(130);
        if (askedAt !== undefined) return;
        askedAt = now;
        log.info({ signal }, 'stopping');
        resolve();
      });
    }
  });
}
