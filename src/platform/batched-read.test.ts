/** Concurrent reads by key share statements, and each one sees what was committed before it. */
import { randomUUID } from 'node:crypto';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';
import { batchedRead, preparedByKeys } from './batched-read.ts';

const cloud = useCloudyard({ driver: null, audit: false });

interface Item {
  id: string;
  value: number;
}
const keyOf = ({ id }: Item) => [id];

/** A table of its own for each test, and the ids of each statement that reads it. */
async function openTable(name: string) {
  const query = (text: string, values: unknown[] = []) => cloud.db.$client.query(text, values);
  await query(`create table ${name} (id uuid primary key, value int not null)`);
  const select = preparedByKeys<Item>(`${name}_read`, (ids) => `select id, value from ${name} where id in (${ids})`);
  const statements: string[][] = [];
  const read = batchedRead<Item>((db, keys) => {
    statements.push(keys.flat() as string[]);
    return select(db, keys);
  }, keyOf);
  const insert = async (value: number): Promise<string> => {
    const id = randomUUID();
    await query(`insert into ${name} (id, value) values ($1, $2)`, [id, value]);
    return id;
  };
  return { query, insert, statements, read: (id: string) => read(cloud.db, id) };
}

it('reads of one turn of the event loop share a statement, and each gets its row', async () => {
  const { insert, read, statements } = await openTable('batched_rows');
  const ids = await Promise.all([1, 2, 3, 4, 5].map(insert));
  const missing = randomUUID();
  const rows = await Promise.all([...ids, ids[0]!, missing].map(read));
  expect(rows.map((row) => row?.value)).toEqual([1, 2, 3, 4, 5, 1, undefined]);
  expect(statements).toEqual([[...ids, missing]]);
});

it('a read sees a change that was committed before it, while other reads run', async () => {
  const { query, insert, read } = await openTable('batched_changes');
  const id = await insert(0);
  for (let value = 1; value <= 20; value++) {
    const earlier = [read(id), read(id)];
    await query('update batched_changes set value = $2 where id = $1', [id, value]);
    expect((await read(id))?.value).toBe(value);
    await Promise.all(earlier);
  }
});

it('more reads than fit into a statement are all answered', async () => {
  const { insert, read, statements } = await openTable('batched_many');
  const ids = await Promise.all(Array.from({ length: 150 }, (_, value) => insert(value)));
  const rows = await Promise.all(ids.map(read));
  expect(rows.map((row) => row?.value)).toEqual(ids.map((_, value) => value));
  expect(Math.max(...statements.map((statement) => statement.length))).toBe(64);
});

it('a statement that fails rejects its reads, and later reads succeed', async () => {
  const { query, insert, read } = await openTable('batched_failures');
  const id = await insert(1);
  await query('alter table batched_failures rename to batched_elsewhere');
  const outcomes = await Promise.allSettled([read(id), read(id)]);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await query('alter table batched_elsewhere rename to batched_failures');
  expect((await read(id))?.value).toBe(1);
});

it('reads of several turns share a statement, which is sent after 1 ms although each turn brings more', async () => {
  const statements: string[] = [];
  const read = batchedRead<Item>(async (_db, keys) => {
    statements.push(keys.join());
    return keys.map(([id]) => ({ id: id as string, value: 0 }));
  }, keyOf);
  const now = vi.spyOn(performance, 'now').mockReturnValue(0);
  try {
    const reads: Promise<unknown>[] = [];
    for (const id of ['a', 'b', 'c', 'd']) {
      reads.push(read(cloud.db, id));
      if (id === 'd') now.mockReturnValue(1);
      await turn();
    }
    expect(statements).toEqual(['a,b,c,d']);
    await Promise.all(reads);
  } finally {
    now.mockRestore();
  }
});

/** Reads whose statements end when the test says so. */
function openHeldReads() {
  const statements: { ids: string[]; end(): void }[] = [];
  const read = batchedRead<Item>(
    (_, keys) =>
      new Promise((resolve) => {
        const ids = keys.flat() as string[];
        statements.push({ ids, end: () => resolve(ids.map((id) => ({ id, value: 1 }))) });
      }),
    keyOf,
  );
  return { statements, read: (id: string) => read(cloud.db, id) };
}

it('a connection that does not respond delays only its own reads', async () => {
  const { statements, read } = openHeldReads();
  const held = read('held');
  await vi.waitFor(() => expect(statements).toHaveLength(1));
  for (let i = 1; i <= 20; i++) {
    const next = read(`next${i}`);
    await vi.waitFor(() => expect(statements).toHaveLength(i + 1));
    statements[i]!.end();
    expect((await next)?.id).toBe(`next${i}`);
  }
  statements[0]!.end();
  expect((await held)?.id).toBe('held');
});

it('two statements at most run, and reads that waited for them are answered', async () => {
  const { statements, read } = openHeldReads();
  const reads = [];
  for (const id of ['a', 'b', 'c', 'd']) {
    reads.push(read(id));
    await sleep(30);
  }
  expect(statements.map(({ ids }) => ids)).toEqual([['a'], ['b']]);
  statements[1]!.end();
  await vi.waitFor(() => expect(statements).toHaveLength(3));
  for (const { end } of statements) end();
  expect((await Promise.all(reads)).map((row) => row?.id)).toEqual(['a', 'b', 'c', 'd']);
});

it('reads by several values share a statement, and each gets its row', async () => {
  await cloud.db.$client.query('create table batched_pairs (a int, b text, primary key (a, b))');
  await cloud.db.$client.query(`insert into batched_pairs values (1, 'x'), (1, 'x/y'), (2, 'x')`);
  const select = preparedByKeys<{ a: number; b: string }>(
    'batched_pairs_read',
    (keys) => `select a, b from batched_pairs where (a, b) in (${keys})`,
    2,
  );
  let statements = 0;
  const read = batchedRead<{ a: number; b: string }>(
    (db, keys) => {
      statements += 1;
      return select(db, keys);
    },
    ({ a, b }) => [a, b],
  );
  const keys = [
    [1, 'x'],
    [1, 'x/y'],
    [2, 'x'],
    [2, 'x/y'],
    [1, 'X'],
  ] as const;
  const rows = await Promise.all(keys.map(([a, b]) => read(cloud.db, a, b)));
  expect(rows).toEqual([{ a: 1, b: 'x' }, { a: 1, b: 'x/y' }, { a: 2, b: 'x' }, null, null]);
  expect(statements).toBe(1);
});
