/**
 * Keeps jobs of one client from taking every slot of a worker: driver calls that hang would stop the other clients.
 *
 * Invariant: at most `most` jobs of a client run here. Each job carries a flag that names its client, and a fetch skips the
 * clients that run as many as they may (`forbiddenFlags` of graphile-worker).
 *
 * Fetches take turns, because a job counts only once it is here. A fetch that skips a client reads all ready jobs of that
 * client, so one that found nothing is repeated at once when a slot of a client becomes free, and otherwise only after ten
 * times the time that it took.
 */
import type { WorkerEvents } from 'graphile-worker';

const idleFactor = 10;

export function watchClientSlots(events: WorkerEvents, most: number): () => Promise<string[] | null> {
  const running = new Map<string, number>();
  let turn = Promise.resolve();
  let endTurn = () => {};
  let slotFreed = () => {};
  let skipping = false;
  let fetchBegan = 0;
  let notBefore = 0;

  const add = (flags: object | null, change: 1 | -1) => {
    for (const flag of Object.keys(flags ?? {})) {
      const count = (running.get(flag) ?? 0) + change;
      if (count > 0) running.set(flag, count);
      else running.delete(flag);
    }
  };
  const full = () => [...running].filter(([, count]) => count >= most).map(([flag]) => flag);

  events.on('job:start', ({ job }) => {
    add(job.flags, 1);
    endTurn();
  });
  events.on('job:complete', ({ job }) => {
    add(job.flags, -1);
    slotFreed();
  });
  events.on('worker:getJob:error', () => endTurn());
  events.on('worker:getJob:empty', () => {
    const now = performance.now();
    if (skipping) notBefore = now + idleFactor * (now - fetchBegan);
    endTurn();
  });

  return async () => {
    const before = turn;
    const mine = Promise.withResolvers<void>();
    turn = mine.promise;
    await before;
    endTurn = mine.resolve;
    for (
      let wait = notBefore - performance.now();
      full().length > 0 && wait > 0;
      wait = notBefore - performance.now()
    ) {
      await Promise.race([
        new Promise<void>((resolve) => (slotFreed = resolve)),
        new Promise<void>((resolve) => void setTimeout(resolve, wait)),
      ]);
    }
    const flags = full();
    skipping = flags.length > 0;
    fetchBegan = performance.now();
    return skipping ? flags : null;
  };
}
