/** The index that a worker builds after the upgrade of a large log. */
import { setTimeout as sleep } from 'node:timers/promises';
import { sql as q } from 'drizzle-orm';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';
import { until } from '../../test/until.ts';
import { connect } from '../platform/db.ts';
import { silentLogger } from '../platform/log.ts';
import { changedRows, isAmong } from '../resources/audit/store.ts';
import { ensureFilterIndex } from './filter-index.ts';
import { auditEntries } from './table.ts';

const cloud = useCloudyard({ driver: null, audit: false });
const entries = 20_000;
const log = '/cloudyard/v1/audit';

const sql = async (text: string, values: unknown[] = []) => (await cloud.db.$client.query(text, values)).rows;
const insert = (count: number) =>
  sql(
    `insert into audit_entries (at, client_id, operation, origin, changes)
     select now(), 1, 'createVolume', '{}', jsonb_build_array(jsonb_build_object(
       'table', case n % 1000 when 0 then 'pull_secrets' else 'volumes' end, 'id', n::text))
     from generate_series(1, $1::int) n`,
    [count],
  );
const state = async (): Promise<boolean | null> =>
  (await sql(`select indisvalid from pg_index where indexrelid = to_regclass('audit_entries_keys')`))[0]?.indisvalid ??
  null;
const building = async () =>
  (
    await sql(
      `select pid from pg_stat_activity where query like 'create index concurrently%' and datname = current_database()`,
    )
  ).length > 0;

/** Runs `during` while a build waits for a transaction that is older than it. */
async function whileBuilding(during: () => Promise<void>, db = cloud.db): Promise<void> {
  const older = await cloud.db.$client.connect();
  await older.query('begin');
  await older.query(`update audit_entries set operation = operation where id = (select max(id) from audit_entries)`);
  const build = ensureFilterIndex(db).then(
    () => null,
    (error: Error) => error.message,
  );
  try {
    await until(building, 20, 'the build to start');
    await during();
  } finally {
    await older.query('rollback');
    older.release();
    await build;
  }
}

beforeEach(async () => {
  await sql('drop index if exists audit_entries_keys');
  await sql('truncate audit_entries cascade');
  await insert(entries);
});

describe('the filter index', () => {
  it('is built although that takes longer than the statement_timeout of the operator', {
    timeout: 30_000,
  }, async () => {
    const limited = connect({ ...cloud.connection, log: silentLogger });
    onTestFinished(() => limited.$client.end());
    limited.$client.on('connect', (client) => void client.query(`set statement_timeout = '300ms'`).catch(() => {}));
    await whileBuilding(() => sleep(1000), limited);
    expect(await state()).toBe(true);
  });

  it('answers a filter by many rows, whose conditions are not checked for each entry', {
    timeout: 30_000,
  }, async () => {
    await ensureFilterIndex(cloud.db);
    const ids = (first: number) => Array.from({ length: 900 }, (_, i) => `resource_id=${first + i}`).join('&');
    const found = async (first: number) => (await cloud.get(`/cloud/v1/user_actions?${ids(first)}&limit=1`)).body.count;
    expect([await found(1), await found(entries - 99), await found(entries + 1)]).toEqual([900, 100, 0]);
  });

  it('finds each entry once: for an id that is listed again and again, and for many ids of one entry', async () => {
    await ensureFilterIndex(cloud.db);
    const many = Array.from({ length: 1000 }, (_, i) => `shared-${i}`);
    const change = (id: string) => ({ table: 'volumes', id });
    for (const changes of [many.map(change), ...Array.from({ length: 20 }, () => [change('repeated')])]) {
      await sql(
        `insert into audit_entries (at, client_id, operation, origin, changes) values (now(), 1, 'createVolume', '{}', $1)`,
        [JSON.stringify(changes)],
      );
    }
    const read = async (ids: string[]) => {
      const { rows } = await cloud.db.execute<Record<string, string>>(
        q`explain (analyze, timing off) select id from ${auditEntries} where ${isAmong(changedRows(undefined, ids))}`,
      );
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      const scans = plan.matchAll(/Bitmap Heap Scan on audit_entries .*actual rows=(\d+)\S* loops=(\d+)/g);
      return [...scans].map(([, count, loops]) => Number(count) * Number(loops));
    };
    expect(await read(many)).toEqual([1]);
    expect(await read(Array.from({ length: 1000 }, () => 'repeated'))).toEqual([20]);
  });

  it('reads a page of a row with many entries without checking all of them, in any scope', async () => {
    await ensureFilterIndex(cloud.db);
    await sql(`update audit_entries set changes = '[{"table": "volumes", "id": "busy"}]' where id % 2 = 0`);
    await sql('analyze audit_entries');
    const [{ last }] = await sql('select max(id) as last from audit_entries');
    const { $client: pool } = cloud.db;
    const query = pool.query.bind(pool);
    const statements: { text: string; values: unknown[] }[] = [];
    pool.query = ((...[config, values]: [{ text: string }, unknown[]]) => {
      if (config.text?.includes('pg_column_size')) statements.push({ text: config.text, values });
      return query(config as never, values);
    }) as typeof query;
    const found: number[] = [];
    for (const scope of ['', '&client_id=1', '&operation=createVolume', `&before=${last - entries / 2}`]) {
      found.push((await cloud.get(`${log}?table=volumes&row_id=busy${scope}`)).body.results.length);
    }
    pool.query = query;
    expect(found).toEqual([100, 100, 100, 100]);
    for (const { text, values } of statements) {
      const rows = await sql(`explain (analyze, timing off) ${text}`, values);
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      const checks = [...plan.matchAll(/jsonb_array_elements.*actual rows=\S+ loops=(\d+)/g)];
      expect(checks.map(([, loops]) => Number(loops))).toEqual([101]);
    }
  });

  it('is built once by several workers, and answers the filters of a large log', async () => {
    const found = async () => (await cloud.get(`${log}?table=pull_secrets&row_id=7000`)).body.results;
    const before = await found();
    expect(before).toHaveLength(1);
    await Promise.all([1, 2, 3].map(() => ensureFilterIndex(cloud.db)));
    expect(await state()).toBe(true);
    expect(await found()).toEqual(before);
    const [built] = await sql(`select 'audit_entries_keys'::regclass::oid as oid`);
    await ensureFilterIndex(cloud.db);
    expect(await sql(`select 'audit_entries_keys'::regclass::oid as oid`)).toEqual([built]);
  });

  it('is selected for rare tables, and not for a table that most entries have', async () => {
    await ensureFilterIndex(cloud.db);
    const planFor = async (table: string) => {
      const plan = await cloud.db.execute(
        q`explain select id from ${auditEntries} where ${changedRows(table, undefined)} order by id desc limit 1001`,
      );
      return JSON.stringify(plan.rows);
    };
    expect(await planFor('pull_secrets')).toContain('audit_entries_keys');
    expect(await planFor('volumes')).toContain('audit_entries_pkey');
  });

  it('does not block changes while it is built', async () => {
    await whileBuilding(async () => {
      await cloud.post('/cloud/v1/projects', { name: 'during the build' });
      await insert(10);
      expect(await state()).toBe(false);
    });
    expect(await state()).toBe(true);
    const { results } = (await cloud.get(`${log}?table=projects`)).body;
    expect(results[0]).toMatchObject({ operation: 'createProject' });
    expect((await cloud.get(`${log}?table=volumes&row_id=3&limit=5`)).body.results).toHaveLength(2);
  });

  it('is built again after a build that was interrupted', async () => {
    await whileBuilding(async () => {
      await sql(`select pg_terminate_backend(pid) from pg_stat_activity where query like 'create index concurrently%'
        and datname = current_database()`);
      await until(async () => !(await building()), 20, 'the build to end');
    });
    expect(await state()).toBe(false);
    await ensureFilterIndex(cloud.db);
    expect(await state()).toBe(true);
  });
});
