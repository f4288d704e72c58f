/**
 * The long-running commands: `start` (server and workers in one process), `serve`, `worker` and `host`. Each opens its
 * parts in order (server-parts.ts), and closes them in reverse on a signal. A `worker` or `host` that receives SIGTERM or
 * SIGHUP keeps its data planes running, and the next process adopts them, so that a restart does not interrupt traffic.
 * `start` does the same with CLOUDYARD_KEEP_DATA_PLANES=1, and after a start that failed.
 *
 * The modules of the parts take 0.3 s to load. This one imports little, so that the embedded PostgreSQL starts meanwhile.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { isBusy, isUnavailable } from '../platform/db-errors.ts';
import { createLogger, type Logger } from '../platform/log.ts';
import { findServiceManager } from '../platform/service-manager.ts';
import { beginDatabase } from './database.ts';
import type { Roles, StartContext } from './open-services.ts';
import type { Settings } from './settings.ts';
import { close, endAtOnce, type ShutdownSteps } from './shutdown.ts';
import { version } from './version.ts';

/** Runs until a signal stops it. @throws if it cannot start */
export async function run(settings: Settings, roles: Roles): Promise<void> {
  const log = createLogger({ level: settings.logLevel, pretty: settings.logFormat === 'pretty' });
  log.info({ version, node: process.version }, 'starting');
  const stopped = untilSignal(log);
  // The launcher (bin/cloudyard.mjs) has ended. As after a kill of this process, the next start must find it gone.
  const endWithLauncher = () => {
    log.fatal('the launcher has ended; stopping');
    endAtOnce();
  };
  process.on('disconnect', endWithLauncher);
  // While the modules were loaded. Undefined without a launcher.
  if (process.connected === false) endWithLauncher();
  const serviceManager = findServiceManager(process.env, log);
  const isService = serviceManager !== null;
  const closing = await retryWhileBusy(() => start({ settings, roles, log, isService }), stopped, log);
  if (closing === null) return;
  await serviceManager?.ready();
  const signal = await stopped;
  process.off('disconnect', endWithLauncher);
  await serviceManager?.stopping();
  const mustKeep = signal !== 'SIGINT' && (!roles.serve || settings.keepDataPlanes);
  await close(closing, mustKeep ? 'keepDataPlanes' : 'stop', log);
}

/** SIGHUP: the terminal was closed. */
const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
type Stop = (typeof stopSignals)[number];

/** Returns the steps that close everything. @throws if it cannot start; everything is closed then */
async function start({
  settings,
  roles,
  log,
  isService,
}: Pick<StartContext, 'settings' | 'roles' | 'log'> & { isService: boolean }): Promise<ShutdownSteps> {
  const closing: ShutdownSteps = [];
  try {
    if (roles.agent) (await import('./several-hosts.ts')).requireAgentSettings(settings);
    const opening = beginDatabase(settings, log, closing);
    const { startParts } = await import('./server-parts.ts');
    await startParts({ settings, roles, log, closing, opening }, isService);
    return closing;
  } catch (error) {
    // Unreadable data may have a data plane, too.
    const mustKeep = await import('./drivers.ts').then((drivers) => drivers.hasDataPlane(settings)).catch(() => true);
    await close(closing, mustKeep ? 'keepDataPlanes' : 'stop', log);
    throw error;
  }
}

const retryMs = 1000;
const retryTimeoutMs = 60_000;

/**
 * Repeats a start for a minute while PostgreSQL runs and does not accept connections: it starts up, is slow, or all
 * connections are taken. If no PostgreSQL runs, the first attempt fails. Returns null if a signal comes between two attempts.
 */
async function retryWhileBusy<T>(attempt: () => Promise<T>, stopped: Promise<Stop>, log: Logger): Promise<T | null> {
  const giveUp = performance.now() + retryTimeoutMs;
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await attempt();
    } catch (error) {
      const mayPass = isFirst ? isBusy(error) : isUnavailable(error);
      if (!mayPass || performance.now() > giveUp) throw error;
      log.warn({ err: error }, 'PostgreSQL does not accept connections yet; starting again');
      if (await Promise.race([stopped, sleep(retryMs)])) return null;
    }
  }
}

const repeatedSignalMs = 1000;

/**
 * The first signal starts an orderly stop; a later one ends the process at once. A signal within a second counts as the
 * same one: a signal to the process group reaches this process twice, directly and through the launcher.
 */
function untilSignal(log: Logger): Promise<Stop> {
  return new Promise((resolve) => {
    let firstAt: number | undefined;
    for (const signal of stopSignals) {
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
