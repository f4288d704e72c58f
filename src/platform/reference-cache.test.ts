/** How current cached rows are: by the reads of the revision, with a clock of the test. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Db, Tx } from './db.ts';
import { createReferenceCaches, type ReferenceCaches } from './reference-cache.ts';

let database: { revision: number; isAway: boolean; reads: number };
let caches: ReferenceCaches;
let loads: string[];
let find: (key: string) => unknown;

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  database = { revision: 1, isAway: false, reads: 0 };
  const query = (_statement: unknown, callback: (error: Error | null, result?: unknown) => void) => {
    database.reads += 1;
    if (database.isAway) return callback(new Error('the database is away'));
    callback(null, { rows: [{ value: database.revision }] });
  };
  caches = createReferenceCaches({ $client: { query } } as unknown as Db);
  loads = [];
  find = caches.cached(async (key: string) => {
    loads.push(key);
    return key === 'missing' ? null : `row ${key}`;
  });
  await vi.advanceTimersByTimeAsync(0);
});

afterEach(() => {
  caches.stop();
  vi.useRealTimers();
});

it('reads the revision four times a second', async () => {
  const before = database.reads;
  await vi.advanceTimersByTimeAsync(1000);
  expect(database.reads - before).toBe(4);
});

it('returns a cached row without a promise while the revision is unchanged, and does not cache misses', async () => {
  expect(await find('a')).toBe('row a');
  for (let i = 0; i < 20; i += 1) {
    await vi.advanceTimersByTimeAsync(250);
    expect(find('a')).toBe('row a');
  }
  for (let i = 0; i < 2; i += 1) expect(await find('missing')).toBeNull();
  expect(loads).toEqual(['a', 'missing', 'missing']);
});

it('clears all caches with the next read of a changed revision', async () => {
  const ofOthers = caches.cached(async (key: string) => `other ${key}`);
  await find('a');
  await ofOthers('a');
  database.revision = 2;
  await vi.advanceTimersByTimeAsync(249);
  expect([find('a'), ofOthers('a')]).toEqual(['row a', 'other a']);
  await vi.advanceTimersByTimeAsync(1);
  for (const found of [find('a'), ofOthers('a')]) expect(found).toBeInstanceOf(Promise);
});

it('clears all caches when a change of this process commits', async () => {
  await find('a');
  const tx = { pending: [], committed: [] as (() => void)[], $client: { query: async () => ({ rows: [] }) } };
  await caches.changed(tx as unknown as Tx);
  expect(find('a')).toBe('row a');
  for (const work of tx.committed) work();
  expect(find('a')).toBeInstanceOf(Promise);
});

it('bypasses the caches 900 ms after the last read of the revision, and uses them after the next', async () => {
  await find('a');
  database.isAway = true;
  await vi.advanceTimersByTimeAsync(899);
  expect(find('a')).toBe('row a');
  await vi.advanceTimersByTimeAsync(1);
  expect(find('a')).toBeInstanceOf(Promise);
  database.isAway = false;
  await vi.advanceTimersByTimeAsync(250);
  expect(find('a')).toBe('row a');
});

it('does not cache a row whose read began before a change', async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const slow = caches.cached(() => promise);
  const reading = slow('a');
  database.revision = 2;
  await vi.advanceTimersByTimeAsync(250);
  resolve('before the change');
  await reading;
  expect(slow('a')).toBeInstanceOf(Promise);
});
