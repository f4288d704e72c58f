import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, describe, expect, inject, it, vi } from 'vitest';
import { inDatabase } from '../../test/postgres.ts';
import type { ConnectionOptions } from '../platform/db.ts';
import { migrate } from './migrate.ts';
import { root } from '../platform/program-files.ts';

/** SHA-256 of every released migration. A release adds a line; no line ever changes. */
const released: Record<string, string> = {
  '0000_initial.sql': 'a4f0503d289c07d8ba8787b58a03878fa67e61fa668923e79251450976cafc66',
};

const folder = join(root, 'migrations');
const name = `migrations_${process.pid}`;

async function query(connection: ConnectionOptions, text: string): Promise<unknown[]> {
  const client = new pg.Client(connection);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

async function emptyDatabase(): Promise<ConnectionOptions> {
  const connection = inject('postgres');
  await query(connection, `create database ${name}`);
  return inDatabase(connection, name);
}

afterEach(() => query(inject('postgres'), `drop database if exists ${name} with (force)`));

describe('migrations', () => {
  it('never change once they are released', () => {
    const hashes = readdirSync(folder)
      .filter((file) => file in released)
      .map((file) => [
        file,
        createHash('sha256')
          .update(readFileSync(join(folder, file)))
          .digest('hex'),
      ]);
    expect(Object.fromEntries(hashes)).toEqual(released);
  });

  it('run once', async () => {
    const connection = await emptyDatabase();
    await migrate(connection);
    await migrate(connection);
    expect(await query(connection, 'select count(*)::int as count from drizzle.__drizzle_migrations')).toEqual([
      { count: readdirSync(folder).filter((file) => /^\d{4}_.*\.sql$/.test(file)).length },
    ]);
  });

  it('of listeners, pools and shares keep what responses show, apart from what the API no longer has', async () => {
    const connection = await emptyDatabase();
    await migrate(connection);
    // Each table gets the columns that the migration reads; constraints do not matter here.
    await query(
      connection,
      `create schema before; set search_path to before;
       create table file_shares (id int, type_name text, root_squash boolean not null);
       insert into file_shares values (1, 'standard', false), (2, 'standard', true), (3, 'vast', false);
       create table lb_listeners (id int, connection_limit int);
       insert into lb_listeners values (1, -1), (2, 7);
       create table lb_pools (id int, protocol text, session_persistence jsonb);
       insert into lb_pools values (1, 'TCP', null), (2, 'TCP', '{"type": "SOURCE_IP", "persistence_timeout": 60}'),
         (3, 'UDP', '{"type": "SOURCE_IP"}');
       ${readFileSync(join(folder, '0003_second_pass.sql'), 'utf8')}`,
    );
    const rows = (columns: string, table: string) =>
      query(connection, `select ${columns} from before.${table} order by id`);
    expect(await rows('root_squash as squash', 'file_shares')).toEqual([
      { squash: null },
      { squash: true },
      { squash: false },
    ]);
    expect(await rows('connection_limit as most', 'lb_listeners')).toEqual([{ most: 100_000 }, { most: 7 }]);
    expect(await rows('session_persistence as kept', 'lb_pools')).toEqual([
      { kept: null },
      { kept: { type: 'SOURCE_IP', persistence_timeout: null, persistence_granularity: null } },
      { kept: { type: 'SOURCE_IP' } },
    ]);
  });

  it('refuse a database of a state before 0.2.0, and change nothing in it', async () => {
    const connection = await emptyDatabase();
    await query(
      connection,
      `create schema drizzle;
       create table drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint);
       insert into drizzle.__drizzle_migrations (hash, created_at) values ('x', 1795179782405)`,
    );
    await expect(migrate(connection)).rejects.toThrow('created by a version before 0.2.0');
    expect(await query(connection, `select to_regclass('projects') as name`)).toEqual([{ name: null }]);
  });

  it('change nothing when their process dies before any of their statements', { timeout: 300_000 }, async () => {
    const connection = await emptyDatabase();
    await query(connection, readFileSync(join(folder, '0000_initial.sql'), 'utf8'));
    await query(connection, jobsOfRelease);
    const columns = `select table_schema, table_name, count(*)::int as columns from information_schema.columns
      where table_schema not in ('information_schema', 'pg_catalog') group by 1, 2 order by 1, 2`;
    const rows = () => query(connection, 'select count(*)::int as count from notifications');
    const before = [await query(connection, columns), await rows()];
    const original = pg.Client.prototype.query;
    let [left, wasReached] = [0, true];
    const dying = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: any[]) {
      // PostgreSQL sees what it sees of a process that was killed: the connection closes in the middle of the transaction.
      if (left-- === 0) {
        wasReached = true;
        (this as any).connection.stream.destroy();
      }
      return original.apply(this, args as never);
    } as never);
    let statements = 0;
    let after: unknown[] = before;
    for (; wasReached; statements++) {
      [left, wasReached] = [statements, false];
      await migrate(connection).catch(() => {});
      left = Infinity;
      // The triggers and functions after the transaction may be missing; the next start installs them.
      after = [await query(connection, columns), await rows()];
      if (JSON.stringify(after) !== JSON.stringify(before)) break;
    }
    expect(statements).toBeGreaterThan(40);
    // The first run that did not die before the commit has migrated everything.
    const complete = await query(connection, 'select count(*)::int as count from drizzle.__drizzle_migrations');
    expect(complete).toEqual([{ count: readdirSync(folder).filter((file) => /^\d{4}_.*\.sql$/.test(file)).length }]);
    dying.mockRestore();
    await migrate(connection);
    expect(
      await query(
        connection,
        `select count(*)::int > 20 as enough from pg_proc where pronamespace = 'cloudyard_writes'::regnamespace`,
      ),
    ).toEqual([{ enough: true }]);
  });

  it('copy the jobs of 0.2.0, and drop the schema that had them', async () => {
    const connection = await emptyDatabase();
    await query(connection, readFileSync(join(folder, '0000_initial.sql'), 'utf8'));
    await query(connection, jobsOfRelease);
    await migrate(connection);
    expect(await query(connection, `select to_regnamespace('graphile_worker') as name`)).toEqual([{ name: null }]);
    const jobs =
      'select kind, id, queue, client_id, priority, attempts, locked_by, run_at <= now() as due from jobs order by 1, 2';
    const waiting = { attempts: 0, locked_by: null };
    expect(await query(connection, jobs)).toEqual([
      { kind: 'deliver', id: delivery, queue: 'notifications', client_id: 7, priority: 0, due: false, ...waiting },
      { kind: 'file_share', id: 'a', queue: 'region:1', client_id: 7, priority: 3, due: true, ...waiting },
      { kind: 'file_share', id: 'b', queue: 'region:2', client_id: 0, priority: 30000, due: true, ...waiting },
      { kind: 'quota_alert', id: '7', queue: 'notifications', client_id: 7, priority: 0, due: false, ...waiting },
    ]);
  });
});

const delivery = '11111111-1111-4111-8111-111111111111';

/**
 * The columns of graphile-worker 0.17.3 that the migration reads. Among the jobs: one that is locked, one that was replaced
 * while it ran (it has no key), one in backoff, and one whose delivery is gone.
 */
const jobsOfRelease = `
  create schema drizzle;
  create table drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint);
  insert into drizzle.__drizzle_migrations (hash, created_at) values ('x', 1795346463961);
  create schema graphile_worker;
  create table graphile_worker._private_tasks (id int primary key, identifier text not null);
  create table graphile_worker._private_jobs (id bigint generated always as identity primary key, task_id int not null,
    payload json not null, priority smallint not null default 0, run_at timestamptz not null default now(),
    attempts smallint not null default 0, key text, locked_at timestamptz, locked_by text, flags jsonb);
  insert into graphile_worker._private_tasks values (1, 'reconcile:1'), (2, 'reconcile:2'), (3, 'deliver'), (4, 'quota_alert');
  insert into notifications (id, client_id, type, subject, body, data, created_at)
    values ('${delivery}', 7, 'quota', 'x', '{}', '{}', now());
  insert into notification_deliveries (id, notification_id, channel, target, state, attempts, attempt_count, failures, give_up_at)
    values ('${delivery}', '${delivery}', 'email', 'a@example.com', 'pending', '[]', 0, 0, now());
  insert into graphile_worker._private_jobs (task_id, payload, priority, key, flags, locked_by, locked_at, attempts, run_at) values
    (1, '{"resource": "file_share", "id": "a"}', 3, 'file_share:a', '{"client:7": true}', 'worker-x', now(), 1, now()),
    (1, '{"resource": "file_share", "id": "a"}', 3, null, '{"client:7": true}', 'worker-x', now(), 25, now()),
    (2, '{"resource": "file_share", "id": "b"}', 30000, 'file_share:b', null, null, null, 3, now() + interval '6 hours'),
    (3, '{"id": "${delivery}"}', 0, 'deliver:${delivery}', null, null, null, 0, now() + interval '1 hour'),
    (3, '{"id": "22222222-2222-4222-8222-222222222222"}', 0, 'deliver:22222222', null, null, null, 0, now()),
    (4, '{"client_id": 7}', 0, 'quota_alert:7', null, null, null, 0, now() + interval '1 minute')`;
