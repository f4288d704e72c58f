/** Reads by id, and first pages: one statement that returns rows and count, planned once for each connection. */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { eq, getTableColumns, is, sql } from 'drizzle-orm';
import { alias, PgTable } from 'drizzle-orm/pg-core';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';
import { connect, type Db } from '../platform/db.ts';
import { silentLogger } from '../platform/log.ts';
import { root } from '../platform/program-files.ts';
import { list, load } from './file-shares/store.ts';
import { fileShares } from './file-shares/table.ts';
import { oldestFirst, pageReader, selectOf, textOf } from './read-kit.ts';

const cloud = useCloudyard({ driver: null, audit: false });
const scope = { projectId: 1, regionId: 1 };
const shares = 12;
/** One connection, so that the statements of a test run in one session. */
let db: Db;

beforeAll(async () => {
  await cloud.patch('/cloudyard/v1/clients/1/quotas', { region_id: 1, sfs_count_limit: 100, sfs_size_limit: 1000 });
  const { body } = await cloud.get('/cloud/v1/networks/1/1');
  const network = { network_id: body.results[0].id };
  const create = { name: 'share', protocol: 'NFS', size: 1, network };
  for (let n = 0; n < shares; n++) expect((await cloud.post('/cloud/v1/file_shares/1/1', create)).status).toBe(200);
  db = connect({ ...cloud.connection, poolSize: 1, log: silentLogger });
});
afterAll(() => db.$client.end());

it('a select list is the one that Drizzle builds', async () => {
  const modules = globSync('src/**/table.ts', { cwd: root }).map((file) => import(join(root, file)));
  const exports = (await Promise.all(modules)).flatMap((module) => Object.values(module));
  const tables = [...exports.filter((value) => is(value, PgTable)), alias(fileShares, 'another "name"')];
  expect(tables.length).toBeGreaterThan(30);
  for (const table of tables) {
    const columns = { ...getTableColumns(table), 'a "field"': sql`now() - interval '1 day'` };
    const items = Object.entries(columns).map(([field, column]) => sql`${column} as ${sql.identifier(field)}`);
    const built = sql`select ${sql.join(items, sql`, `)} from ${table} where ${sql`true`}`;
    expect(selectOf(table, { columns, joins: sql`where true` })).toBe(textOf(built));
  }
});

it('an id in upper case names the same row', async () => {
  const [share] = (await list(db, scope, { limit: 1 })).rows;
  expect((await load(db, share!.id.toUpperCase()))?.id).toBe(share!.id);
});

it('a full page and the count of all rows are one statement', async () => {
  const query = vi.spyOn(db.$client, 'query');
  const page = await list(db, scope, { limit: 10 });
  expect([page.count, page.rows.length]).toEqual([shares, 10]);
  expect(query).toHaveBeenCalledTimes(1);
  query.mockRestore();
});

it('pages of all limits and offsets agree', async () => {
  const { rows } = await list(db, scope, {});
  const ids = rows.map(({ id }) => id);
  expect(ids).toHaveLength(shares);
  for (const page of [{ limit: 10 }, { limit: 3 }, { limit: 20 }, { limit: 10, offset: 5 }, { offset: 50 }]) {
    const found = await list(db, scope, page);
    const { limit = shares, offset = 0 } = page;
    expect(found.rows.map(({ id }) => id)).toEqual(ids.slice(offset, offset + limit));
    expect(found.count).toBe(shares);
  }
  expect(await list(db, { projectId: 1, regionId: 2 }, { limit: 10 })).toEqual({ count: 0, rows: [] });
});

it('PostgreSQL plans a first page once, for projects of any size', async () => {
  const plans = async () => {
    const { rows } = await db.$client.query(
      `select generic_plans::int as generic, custom_plans::int as custom from pg_prepared_statements
       where statement like '%file_shares%limit 50'`,
    );
    return rows[0];
  };
  // Most rows belong to project 1, so plans for the others would seem cheaper than the general one.
  await db.$client.query(`insert into file_shares
    select (jsonb_populate_record(s, jsonb_build_object('id', gen_random_uuid()))).*
    from file_shares s, generate_series(1, 100)`);
  await db.$client.query('analyze file_shares');
  // PostgreSQL compares the general plan with five plans for values.
  for (let n = 0; n < 5; n++) await list(db, { projectId: 2, regionId: 1 }, { limit: 50 });
  const { custom, generic } = await plans();
  for (const projectId of [1, 2, 3, 4, 5]) await list(db, { projectId, regionId: 1 }, { limit: 50 });
  expect(await plans()).toEqual({ custom, generic: generic + 5 });
});

it('the columns of rows that an offset skips are not computed', async () => {
  // With an index, PostgreSQL computes columns before it skips rows.
  await db.$client.query(`create temporary sequence computed; set enable_sort = off; set enable_seqscan = off`);
  const columns = { id: fileShares.id, computed: sql`nextval('computed')` };
  const read = pageReader<{ id: string }>(fileShares, { columns });
  const where = eq(fileShares.projectId, 1);
  const { rows } = await read(db, { where, order: oldestFirst(fileShares), page: { limit: 2, offset: 5 } });
  expect(rows).toHaveLength(2);
  const computed = await db.$client.query('select last_value::int from computed');
  expect(computed.rows[0].last_value).toBe(2);
  await db.$client.query('reset enable_sort; reset enable_seqscan');
});
