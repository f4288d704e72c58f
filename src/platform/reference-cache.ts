/**
 * Caches rows that every request needs and that rarely change: tokens, projects.
 *
 * Invariant: a cached row was current within the last second. A small query every `pollMs` reads the revision; a new revision
 * clears all caches. The process that commits a change clears its own at once, so a client that changes something and then
 * uses it on one connection sees the change.
 *
 * Failure modes: when the revision is overdue (the database is away), the caches are bypassed and the read fails, so a broken
 * connection never authenticates a revoked token.
 */
import { afterCommit, type Db, prepared, preparedValue, type Tx } from './db.ts';
import type { MaybePromise } from './maybe-promise.ts';
import { poll } from './poll.ts';

const pollMs = 250;
const trustMs = 900;
const maxEntries = 100_000;
/** Differs from every revision. */
const unread = -1;

const read = preparedValue<number | undefined>('revision_read', `select value from revisions where name = 'reference'`);
const bump = prepared(
  'revision_bump',
  `insert into revisions (name, value) values ('reference', 1)
   on conflict (name) do update set value = revisions.value + 1`,
);

export type ReferenceCaches = ReturnType<typeof createReferenceCaches>;

/** Polls the revision until `stop`. */
export function createReferenceCaches(db: Db) {
  const caches: Map<unknown, unknown>[] = [];
  let revision = unread;
  let trustedUntil = 0;

  const clear = (next: number) => {
    revision = next;
    for (const cache of caches) cache.clear();
  };

  /** After a failure the caches expire by themselves; the next request reads the database and reports the error. */
  const readRevision = async () => {
    const started = performance.now();
    const value = (await read(db)) ?? 0;
    if (value !== revision) clear(value);
    trustedUntil = started + trustMs;
  };

  return {
    /** Wraps a loader. Rows that it finds are cached; misses are not. A cached row is returned without a promise. */
    cached<K, V>(load: (key: K) => Promise<V | null>): (key: K) => MaybePromise<V | null> {
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
    /**
     * Call in the transaction that changes or removes reference data; new rows are in no cache. This process clears its caches
     * with the commit, others within a second.
     */
    async changed(tx: Tx): Promise<void> {
      await bump(tx);
      afterCommit(tx, () => clear(unread));
    },
    stop: poll(readRevision, pollMs, 0),
  };
}
