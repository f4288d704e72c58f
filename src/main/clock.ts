/** The clock of a process. */
import { systemClock } from '../platform/clock.ts';
import { openDatabaseClock } from '../platform/database-clock.ts';
import type { Db } from '../platform/db.ts';
import { openDevelopmentClock } from '../platform/development-clock.ts';
import type { Logger } from '../platform/log.ts';
import type { Settings } from './settings.ts';

/**
 * In development mode the clock that clients can move; otherwise that of the database. The embedded PostgreSQL has the clock
 * of this host. Call `stop` at the end. @throws if the database cannot be reached
 */
export async function openClock({ development, databaseUrl }: Settings, db: Db, log: Logger) {
  const movableClock = development ? await openDevelopmentClock(db) : null;
  const polled = movableClock ?? (databaseUrl === undefined ? null : await openDatabaseClock(db, log));
  return { clock: polled ?? systemClock, movableClock, stop: () => polled?.stop() };
}
