/**
 * Caches rows that every request needs and that rarely change: tokens, projects.
 *
 * Invariant: a cached row was current within the last second. A small query every `pollMs` reads the revision; a new revision
 * clears all caches.
 *
 * Failure modes: when the revision is overdue (the database is away), the caches are bypassed and the read fails, so a broken
 * connection never authenticates a revoked token.
 */
import { prepared } from './db.ts';
import type { Db, Tx } from './db.ts';
import type { MaybePromise } from './maybe-promise.ts';

const pollMs = 250;
const trustMs = 900;
const maxEntries = 100_000;

const read = prepared<{ value: number }>('revision_read', `select value from revisions where name = 'reference'`);
const bump = prepared(
  'revision_bump',
  `insert into revisions (name, value) values ('reference', 1)
   on conflict (name) do update set value = revisions.value + 1`,
);

export interface ReferenceCaches {
  /** Wraps a loader. Rows that it finds are cached; misses are not. A cached row is returned without a promise. */
  cached<K, V>(load: (key: K) => Promise<V | null>): (key: K) => MaybePromise<V | null>;
  /** Call in the transaction that changes reference data: every server clears its caches within a second. */
  changed(tx: Tx): Promise<void>;
  stop(): void;
}

export function createReferenceCaches(db: Db): ReferenceCaches {
  const caches: Map<unknown, unknown>[] = [];
  let revision = -1;
  let trustedUntil = 0;
  let stopped = false;
  let timer: NodeJS.Timeout;

  const poll = async () => {
    const started = performance.now();
    try {
      const [row] = await read(db);
      const value = row?.value ?? 0;
      if (value !== revision) for (const cache of caches) cache.clear();
      revision = value;
      trustedUntil = started + trustMs;
    } catch {
      // The caches expire by themselves; the next request reads the database and reports the error.
    }
    if (!stopped) timer = setTimeout(poll, pollMs).unref();
  };
  timer = setTimeout(poll, 0).unref();

  return {
    cached<K, V>(load: (key: K) => Promise<V | null>) {
      const copies = new Map<K, V>();
      caches.push(copies);
      const read = async (key: K) => {
        const before = revision;
        const value = await load(key);
        // If the revision changed during the read, the value may be older than the change.
        if (value !== null && before === revision && copies.size < maxEntries) copies.set(key, value);
        return value;
      };
      return (key: K) => {
        const copy = copies.get(key);
        return copy !== undefined && performance.now() < trustedUntil ? copy : read(key);
      };
    },
    async changed(tx) {
      await bump(tx);
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
