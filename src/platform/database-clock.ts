/**
 * The clock of the database, which all hosts share: rules compare their time with instants that other hosts stored, such as
 * the end of a session or the next run of a schedule, and clocks of hosts differ.
 *
 * It is the clock of this host plus the difference from PostgreSQL, which is measured every 10 s. A difference below
 * `toleranceMs` is kept, so on a synchronized host, and with the embedded PostgreSQL, this is the clock of the host.
 *
 * Failure modes: without the database the last difference stays in force. A failover to a primary whose clock differs moves
 * the time of all hosts alike, so hosts need NTP; `doctor` compares the clocks.
 */
import { type Db, preparedValue } from './db.ts';
import type { Logger } from './log.ts';
import { poll } from './poll.ts';

const measureMs = 10_000;
const toleranceMs = 250;

const read = preparedValue<number>(
  'database_clock_read',
  'select extract(epoch from clock_timestamp())::float8 * 1000 as ms',
);

/** `hostNow`: the clock of this host, in milliseconds. */
export async function openDatabaseClock(db: Db, log: Logger, { hostNow = Date.now, everyMs = measureMs } = {}) {
  let offset = 0;
  const measure = async () => {
    const before = hostNow();
    const ms = await read(db);
    const after = hostNow();
    const difference = ms - (before + after) / 2;
    // The response may have been under way for all of the time.
    if (Math.abs(difference - offset) <= toleranceMs + (after - before) / 2) return;
    offset = Math.abs(difference) < toleranceMs ? 0 : difference;
    log.warn({ differenceMs: Math.round(difference) }, 'the clock of this host differs from that of PostgreSQL');
  };
  await measure();
  return { now: () => new Date(hostNow() + offset), stop: poll(measure, everyMs) };
}
