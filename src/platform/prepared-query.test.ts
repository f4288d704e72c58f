import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import { describe, expect, it } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';
import { root } from './program-files.ts';
import { deferred } from './db.ts';
import { nameStatement, PreparedQuery, type Statement, statementTexts } from './prepared-query.ts';

const cloud = useCloudyard({ driver: null, audit: false });

const field = (name: string, dataTypeID: number) => ({ name, dataTypeID }) as pg.FieldDef;

/** The function that makes the rows of a statement of one call. */
function rowMaker(fields: pg.FieldDef[]) {
  const query = new PreparedQuery({ text: 'select' }, []);
  query.handleRowDescription({ fields });
  const { _result: result } = query as unknown as { _result: { parseRow(values: (string | null)[]): object } };
  return result.parseRow;
}

it('statements of one call share the function that makes rows if their columns are the same', () => {
  const make = rowMaker([field('id', 23), field('name', 25)]);
  expect(rowMaker([field('id', 23), field('name', 25)])).toBe(make);
  expect(make(['1', null])).toEqual({ id: 1, name: null });
  expect(rowMaker([field('id', 25), field('name', 25)])(['1', 'x'])).toEqual({ id: '1', name: 'x' });
});

it('PostgreSQL describes a statement once for each connection, and refuses it there when its columns have changed', async () => {
  const statement: Statement = { name: 'described_read', text: 'select id, value from described' };
  const read = async (on: pg.PoolClient) => (await new PreparedQuery(statement, []).run(on)).rows;
  const clients = await Promise.all([cloud.db.$client.connect(), cloud.db.$client.connect()]);
  try {
    const [first, second] = clients as [pg.PoolClient, pg.PoolClient];
    // After the first statement of new connections (lost-servers.ts), whose result is described, too.
    for (const client of clients) await client.query('select');
    let descriptions = 0;
    for (const client of clients) protocolOf(client).on('rowDescription', () => (descriptions += 1));
    await first.query(`create table described (id int, value int); insert into described values (1, 2)`);
    expect([await read(first), await read(first), await read(second), await read(second)]).toEqual(
      Array.from({ length: 4 }, () => [{ id: 1, value: 2 }]),
    );
    expect(descriptions).toBe(2);

    await first.query('alter table described alter value type text using (value + 1)::text');
    await expect(read(first)).rejects.toMatchObject({ code: '0A000' });
    const third = await cloud.db.$client.connect();
    clients.push(third);
    expect([await read(third), await read(third)]).toEqual([[{ id: 1, value: '3' }], [{ id: 1, value: '3' }]]);
    await expect(read(second)).rejects.toMatchObject({ code: '0A000' });
  } finally {
    for (const client of clients) client.release(true);
  }
});

function protocolOf(client: pg.PoolClient): { on(event: 'rowDescription', listener: () => void): void } {
  return (client as unknown as { connection: { on(event: 'rowDescription', listener: () => void): void } }).connection;
}

describe('names of statements and writes', () => {
  it('are unique', () => {
    nameStatement('named_twice', 'select 1');
    expect(() => nameStatement('named_twice', 'select 2')).toThrow('two statements are named named_twice');
    const define = () => deferred('write_named_twice', { parameters: '', body: '' });
    define();
    expect(define).toThrow('two writes are named write_named_twice');
  });

  it('are one for each text', async () => {
    const modules = globSync('src/**/*.ts', { cwd: root }).filter(
      (file) =>
        !/test[-.]/.test(file) && /platform\/(db|batched-read)\.ts'/.test(readFileSync(join(root, file), 'utf8')),
    );
    for (const file of modules) await import(join(root, file));
    expect(statementTexts.size).toBeGreaterThan(300);
    expect(namesOfSameText([...statementTexts])).toEqual([]);
    const { rows } = await cloud.db.$client.query<{ name: string; text: string }>(
      `select proname as name, pg_get_function_arguments(oid) || prosrc as text from pg_proc
       where pronamespace = 'cloudyard_writes'::regnamespace`,
    );
    expect(rows.length).toBeGreaterThan(50);
    expect(namesOfSameText(rows.map(({ name, text }) => [name, text]))).toEqual([]);
  });
});

function namesOfSameText(statements: [name: string, text: string][]): string[][] {
  const groups = Map.groupBy(statements, ([, text]) => text.replaceAll(/\s+/g, ' ').trim());
  return [...groups.values()].filter(({ length }) => length > 1).map((group) => group.map(([name]) => name));
}
