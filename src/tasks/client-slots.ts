/**
 * Keeps one client from occupying every slot of a worker: its driver calls may hang, and then no other client's jobs run.
 *
 * Invariant: at most `limit` jobs of a client run in this worker. Each job carries a flag that names its client, and a fetch
 * skips the clients that are at the limit (`forbiddenFlags` of graphile-worker).
 *
 * Fetches take turns, because a job counts only once it has arrived here. A fetch that skips a client reads all ready jobs
 * of that client, so after an empty fetch the next one waits for a free slot, or for ten times as long as the fetch took.
 */
import type { WorkerEvents } from 'graphile-worker';

const idleFactor = 10;

/** Returns the `forbiddenFlags` of graphile-worker. */
export function watchClientSlots(events: WorkerEvents, limit: number): () => Promise<string[] | null> {
  const running = new Map<string, number>();
  let turn = Promise.resolve();
  let endTurn = () => {};
  let onSlotFreed = () => {};
  let skipping = false;
  let fetchStarted = 0;
  let notBefore = 0;

  const add = (flags: object | null, change: 1 | -1) => {
    for (const flag of Object.keys(flags ?? {})) {
      const count = (running.get(flag) ?? 0) + change;
      if (count > 0) running.set(flag, count);
      else running.delete(flag);
    }
  };
  const atLimit = () => [...running].filter(([, count]) => count >= limit).map(([flag]) => flag);

  events.on('job:start', ({ job }) => {
    add(job.flags, 1);
    endTurn();
  });
  events.on('job:complete', ({ job }) => {
    add(job.flags, -1);
    onSlotFreed();
  });
  events.on('worker:getJob:error', () => endTurn());
  events.on('worker:getJob:empty', () => {
    const now = performance.now();
    if (skipping) notBefore = now + idleFactor * (now - fetchStarted);
    endTurn();
  });

  return async () => {
    const previous = turn;
    const current = Promise.withResolvers<void>();
    turn = current.promise;
    await previous;
    endTurn = current.resolve;
    const remaining = () => notBefore - performance.now();
    for (let wait = remaining(); atLimit().length > 0 && wait > 0; wait = remaining()) {
      await Promise.race([
        new Promise<void>((resolve) => (onSlotFreed = resolve)),
        new Promise<void>((resolve) => void setTimeout(resolve, wait)),
      ]);
    }
    const flags = atLimit();
    skipping = flags.length > 0;
    fetchStarted = performance.now();
    return skipping ? flags : null;
  };
}
