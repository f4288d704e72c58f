/**
 * Wakes workers when a job was committed: in memory if the worker of the queue runs in this process, otherwise with NOTIFY.
 *
 * A NOTIFY in the transaction of a change would serialize commits: PostgreSQL holds a lock from it to the end of the commit.
 * So it is sent afterwards, by itself, and at most every few milliseconds, however many jobs were committed meanwhile.
 *
 * Failure modes: a process that dies between commit and NOTIFY delays the job until the next poll of a worker (a second).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Db, prepared } from '../platform/db.ts';
import { channelOf } from './jobs.ts';

const pauseMs = 5;

export type Wakeups = ReturnType<typeof createWakeups>;

const notify = prepared('jobs_notify', `select pg_notify(channel, '') from unnest($1::text[]) as channel`);

export function createWakeups(db: Db) {
  const served = new Map<string, Set<() => void>>();
  const waiting = new Set<string>();
  let sending = false;

  const send = async () => {
    sending = true;
    while (waiting.size > 0) {
      const channels = [...waiting].map(channelOf);
      waiting.clear();
      // Without the database, or when it closes, the next poll of the worker finds the job.
      await notify(db, channels).catch(() => {});
      await sleep(pauseMs);
    }
    sending = false;
  };

  return {
    /** Call it after the commit of a job. */
    wake(queue: string): void {
      const here = served.get(queue);
      if (here?.size) return here.forEach((onWake) => onWake());
      waiting.add(queue);
      if (!sending) void send();
    },

    /** Has `onWake` called instead of sending a NOTIFY. Returns a function that ends the calls. */
    serve(queue: string, onWake: () => void): () => void {
      if (!served.has(queue)) served.set(queue, new Set());
      served.get(queue)!.add(onWake);
      return () => void served.get(queue)!.delete(onWake);
    },
  };
}
