/**
 * Applies the latest revision of each resource, different resources side by side.
 *
 * Invariant: calls for one resource never overlap.
 *
 * Failure modes: a retryable error is retried with backoff until it succeeds or a new revision arrives; a permanent one waits
 * for a new revision.
 */
import type { Turn } from '../platform/turns.ts';
import type { Logger } from '../platform/log.ts';
import type { PublishedState } from './agent-store.ts';
import { observedError } from './observations.ts';
import { keyOf } from './store.ts';

interface StateQueueOptions {
  /** @throws what is recorded as the error */
  apply(published: PublishedState): Promise<void>;
  /** Called after each attempt. `error`: null if the state was applied. */
  record(published: PublishedState, error: unknown): void;
  /** Limits how many states of a kind are applied at once. */
  turnOf(kind: string): Turn;
  log: Logger;
  /** Ends the queue. */
  signal: AbortSignal;
}

interface Item {
  published: PublishedState;
  attempts: number;
  /** Set while it waits to be retried. */
  timer: NodeJS.Timeout | null;
}

const firstRetryMs = 1000;
const lastRetryMs = 30_000;

/** Applies nothing, and records nothing, after `signal` has aborted. */
export function createStateQueue({ apply, record, turnOf, log, signal }: StateQueueOptions) {
  const items = new Map<string, Item>();
  const idleCallers: (() => void)[] = [];
  let active = 0;

  const enqueue = (item: Item) => {
    active += 1;
    void turnOf(item.published.kind)(() => run(item)).finally(() => {
      active -= 1;
      if (active === 0) for (const resolve of idleCallers.splice(0)) resolve();
    });
  };
  const run = async (item: Item) => {
    if (signal.aborted) return;
    const { published } = item;
    const error = await apply(published).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    if (signal.aborted) return;
    record(published, error);
    // A newer revision arrived meanwhile.
    if (item.published !== published) enqueue(item);
    else if (error === null || !observedError(error).retryable) items.delete(keyOf(published));
    else retryLater(item, error);
  };
  const retryLater = (item: Item, error: unknown) => {
    const { kind, id, revision } = item.published;
    const delay = Math.min(firstRetryMs * 2 ** item.attempts++, lastRetryMs);
    log.warn({ err: error, kind, id, revision, retryMs: delay }, 'cannot apply a published state');
    item.timer = setTimeout(() => {
      item.timer = null;
      enqueue(item);
    }, delay);
  };
  const create = (published: PublishedState): Item => {
    const item = { published, attempts: 0, timer: null };
    items.set(keyOf(published), item);
    return item;
  };
  signal.addEventListener('abort', () => {
    for (const { timer } of items.values()) if (timer) clearTimeout(timer);
  });

  return {
    /** Replaces an older revision that waits; one that is being applied ends first. */
    add(published: PublishedState): void {
      const item = items.get(keyOf(published));
      if (!item) return enqueue(create(published));
      Object.assign(item, { published, attempts: 0 });
      if (!item.timer) return;
      clearTimeout(item.timer);
      item.timer = null;
      enqueue(item);
    },
    /** Applies a state later that has just failed, if the error is retryable. */
    retry(published: PublishedState, error: unknown): void {
      if (observedError(error).retryable) retryLater(create(published), error);
    },
    /** The keys of the resources that are being applied or wait. */
    keys: () => items.keys(),
    /** Resolves when nothing is being applied, except for what waits to be retried. */
    async idle(): Promise<void> {
      if (active > 0) await new Promise<void>((resolve) => idleCallers.push(resolve));
    },
  };
}
