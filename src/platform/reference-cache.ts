/**
 * Copies of rows that every request needs and hardly anyone changes: tokens, projects.
 *
 * Invariant: what a copy says was true within the last second. One small query every `pollMs` asks whether anything
 * changed anywhere; when it did, all copies go. When the answer is overdue (the database is away), copies are not
 * trusted and the question goes to the database, which then fails as it should: a revoked token is never let in because
 * of a broken connection.
 */
import { prepared } from './db.ts';
import type { Db, Tx } from './db.ts';

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
  /** Wraps a loader; what it finds is kept, what it does not find is asked for again. */
  cached<K, V>(load: (key: K) => Promise<V | null>): (key: K) => Promise<V | null>;
  /** Call in the transaction that changes reference data: every server has dropped its copies within a second. */
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
    const asked = performance.now();
    try {
      const [row] = await read(db);
      const value = row?.value ?? 0;
      if (value !== revision) for (const cache of caches) cache.clear();
      revision = value;
      trustedUntil = asked + trustMs;
    } catch {
      // Copies lapse by themselves; the request that then asks the database reports the fault.
    }
    if (!stopped) timer = setTimeout(poll, pollMs).unref();
  };
  timer = setTimeout(poll, 0).unref();

  return {
    cached<K, V>(load: (key: K) => Promise<V | null>) {
      const copies = new Map<K, V>();
      caches.push(copies);
      return async (key: K) => {
        const copy = copies.get(key);
        if (copy !== undefined && performance.now() < trustedUntil) return copy;
        const before = revision;
        const value = await load(key);
        // A change between the read and now would be older than the copy: keep it only if none was seen.
        if (value !== null && before === revision && copies.size < maxEntries) copies.set(key, value);
        return value;
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
