/**
 * The clock of development mode: real time and an offset that all processes share through the database. They look four
 * times a second, so each follows within a second.
 */
import type { Clock } from './clock.ts';
import { prepared, transaction } from './db.ts';
import type { Db, Tx } from './db.ts';

const followMs = 200;

export interface MovableClock extends Clock {
  /** How far it is from real time. */
  offsetMs(): number;
  /** Moves it for all processes; for this one at once. `along` is what is to change in the same transaction. */
  setOffset(offsetMs: number, along?: (tx: Tx) => Promise<void>): Promise<void>;
  stop(): void;
}

const read = prepared<{ offset: number }>(
  'development_clock_read',
  'select offset_ms as "offset" from development_clock',
);
const write = prepared(
  'development_clock_write',
  `insert into development_clock (one, offset_ms) values (true, $1)
   on conflict (one) do update set offset_ms = excluded.offset_ms`,
);

export async function openDevelopmentClock(db: Db): Promise<MovableClock> {
  let offset = 0;
  let writing = 0;
  let stopped = false;
  let timer: NodeJS.Timeout;
  const look = async () => {
    const before = writing;
    const [row] = await read(db);
    // What was read while it was being moved may be from before.
    if (before === writing) offset = row?.offset ?? 0;
  };
  const follow = async () => {
    // Without the database time goes on as it did.
    await look().catch(() => {});
    if (!stopped) timer = setTimeout(follow, followMs).unref();
  };
  await look();
  timer = setTimeout(follow, followMs).unref();
  return {
    now: () => new Date(Date.now() + offset),
    offsetMs: () => offset,
    async setOffset(offsetMs, along) {
      writing += 1;
      await transaction(db, async (tx) => {
        await write(tx, offsetMs);
        await along?.(tx);
      });
      offset = offsetMs;
      writing += 1;
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
