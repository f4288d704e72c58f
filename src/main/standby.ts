/**
 * A standby: it waits for the locks of regions that another process works for, and fails over when that process has ended.
 *
 * Failure modes: a failover that fails keeps the data planes that it has adopted running for the next process, and ends
 * this process, which a supervisor starts again.
 */
import type { ConnectionOptions } from '../platform/db.ts';
import type { Logger } from '../platform/log.ts';
import { close, endAsFailed, type ShutdownSteps } from './shutdown.ts';
import { waitForLocks, type WorkLock } from './work-locks.ts';

interface StandbyOptions {
  connection: ConnectionOptions;
  locks: WorkLock[];
  log: Logger;
  /** Starts the work. Every part that it opens adds a step, also if it throws later. */
  work(opened: ShutdownSteps): Promise<unknown>;
}

/** Returns the step that ends the standby, or the work that it has started. */
export function startStandby({ connection, locks, log, work }: StandbyOptions): ShutdownSteps[number] {
  const shutdown = new AbortController();
  const opened: ShutdownSteps = [];
  const failOver = async (): Promise<void> => {
    const held = await waitForLocks(connection, locks, log, shutdown.signal);
    if (!held) return;
    opened.push(held.release);
    log.info({ locks: locks.map(({ what }) => what) }, 'failing over');
    await work(opened).catch(async (error: unknown) => {
      log.fatal({ err: error }, 'failover failed');
      await close(opened, 'keepDataPlanes', log);
      endAsFailed('SIGTERM');
    });
  };
  const failingOver = failOver();
  return async (mode) => {
    shutdown.abort();
    await failingOver;
    await close(opened, mode, log);
  };
}
