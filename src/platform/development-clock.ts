/**
 * The clock of development mode: real time plus an offset that all processes share through the database. Each process polls
 * it five times a second, so a change takes effect everywhere within a second.
 */
import { type Db, prepared, preparedValue, transaction, type Tx } from './db.ts';
import { poll } from './poll.ts';

const pollMs = 200;
/** Longer than an advance waits at one instant (resources/development/service.ts). */
const movingMs = 5000;

export type MovableClock = Awaited<ReturnType<typeof openDevelopmentClock>>;

const read = preparedValue<number | undefined>('development_clock_read', 'select offset_ms from development_clock');
const write = prepared(
  'development_clock_write',
  `insert into development_clock (one, offset_ms) values (true, $1)
   on conflict (one) do update set offset_ms = excluded.offset_ms`,
);

/** Reads the offset, and polls it until `stop`. @throws if the database cannot be reached */
export async function openDevelopmentClock(db: Db) {
  let offset = 0;
  let movedAt = Number.NEGATIVE_INFINITY;
  let writing = 0;
  const change = (next: number) => {
    if (next !== offset) movedAt = performance.now();
    offset = next;
  };
  const refresh = async () => {
    const before = writing;
    const current = await read(db);
    // A read that overlaps a write may return the old offset.
    if (before === writing) change(current ?? 0);
  };
  await refresh();
  return {
    now: () => new Date(Date.now() + offset),
    /** The offset from real time. */
    offsetMs: () => offset,
    /** Reads the offset that the last `setOffset` of any process set. */
    refresh,
    /** Whether the offset has changed in the last seconds. */
    isMoving: () => performance.now() - movedAt < movingMs,
    /** Sets the offset of all processes; of this one at once. `also` runs in the same transaction. */
    async setOffset(offsetMs: number, also?: (tx: Tx) => Promise<void>): Promise<void> {
      writing += 1;
      await transaction(db, async (tx) => {
        await write(tx, offsetMs);
        await also?.(tx);
      });
      change(offsetMs);
      writing += 1;
    },
    // Without the database the last offset stays in force.
    stop: poll(refresh, pollMs),
  };
}
