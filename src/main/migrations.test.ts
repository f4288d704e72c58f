import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { migrationLock } from '../backup/migrations.ts';
import { migrate, migrationsFolder } from './migrate.ts';
import { deliveryId, emptyDatabase, jobsOfRelease, queryOnce } from './test-migrations.ts';

/** SHA-256 of every released migration. A release adds a line; no line ever changes. */
const released: Record<string, string> = {
  '0000_initial.sql': 'a4f0503d289c07d8ba8787b58a03878fa67e61fa668923e79251450976cafc66',
};

describe('migrations', () => {
  it('never change once they are released', () => {
    const hashes = readdirSync(migrationsFolder)
      .filter((file) => file in released)
      .map((file) => [
        file,
        createHash('sha256')
          .update(readFileSync(join(migrationsFolder, file)))
          .digest('hex'),
      ]);
    expect(Object.fromEntries(hashes)).toEqual(released);
  });

  it('run once', async () => {
    const connection = await emptyDatabase();
    await migrate(connection);
    await migrate(connection);
    expect(await queryOnce(connection, 'select count(*)::int as count from drizzle.__drizzle_migrations')).toEqual([
      { count: readdirSync(migrationsFolder).filter((file) => /^\d{4}_.*\.sql$/.test(file)).length },
    ]);
  });

  it.each(['statement_timeout', 'lock_timeout'])(
    'wait for another process that migrates for longer than the %s of the operator',
    async (setting) => {
      const connection = await emptyDatabase();
      await migrate(connection);
      await queryOnce(connection, `alter database "${connection.database}" set ${setting} = '300ms'`);
      const other = new pg.Client(connection);
      await other.connect();
      await other.query('select pg_advisory_lock($1)', [migrationLock]);
      const migrated = migrate(connection);
      await sleep(1000);
      await other.end();
      await migrated;
    },
  );

  it('may take longer than the statement_timeout of the operator', async () => {
    const connection = await emptyDatabase();
    await migrate(connection);
    await queryOnce(
      connection,
      `alter database "${connection.database}" set statement_timeout = '500ms';
       drop schema cloudyard_writes cascade;
       create function take_long() returns event_trigger language plpgsql as $$ begin perform pg_sleep(1); end $$;
       create event trigger take_long on ddl_command_start when tag in ('CREATE SCHEMA') execute function take_long()`,
    );
    await migrate(connection);
  });

  it('of listeners, pools and shares keep what responses show, apart from what the API no longer has', async () => {
    const connection = await emptyDatabase();
    await migrate(connection);
    // Each table gets the columns that the migration reads; constraints do not matter here.
    await queryOnce(
      connection,
      `create schema before; set search_path to before;
       create table file_shares (id int, type_name text, root_squash boolean not null);
       insert into file_shares values (1, 'standard', false), (2, 'standard', true), (3, 'vast', false);
       create table lb_listeners (id int, connection_limit int);
       insert into lb_listeners values (1, -1), (2, 7);
       create table lb_pools (id int, protocol text, session_persistence jsonb);
       insert into lb_pools values (1, 'TCP', null), (2, 'TCP', '{"type": "SOURCE_IP", "persistence_timeout": 60}'),
         (3, 'UDP', '{"type": "SOURCE_IP"}');
       ${readFileSync(join(migrationsFolder, '0003_second_pass.sql'), 'utf8')}`,
    );
    const rows = (columns: string, table: string) =>
      queryOnce(connection, `select ${columns} from before.${table} order by id`);
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
    await queryOnce(
      connection,
      `create schema drizzle;
       create table drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint);
       insert into drizzle.__drizzle_migrations (hash, created_at) values ('x', 1795179782405)`,
    );
    await expect(migrate(connection)).rejects.toThrow('created by a version before 0.2.0');
    expect(await queryOnce(connection, `select to_regclass('projects') as name`)).toEqual([{ name: null }]);
  });

  it('refuse a database that a newer version has migrated, and change nothing in it', async () => {
    const connection = await emptyDatabase();
    await migrate(connection);
    await queryOnce(
      connection,
      `insert into drizzle.__drizzle_migrations (hash, created_at) values ('x', 9000000000000)`,
    );
    const functions = `select count(*)::int as count from pg_proc where pronamespace = 'cloudyard_writes'::regnamespace`;
    await queryOnce(connection, 'drop schema cloudyard_writes cascade; create schema cloudyard_writes');
    await expect(migrate(connection)).rejects.toThrow(
      /^the database was migrated by a newer version than this one .*; start the newer version, or roll back with its command migrate --rollback-from FILE$/,
    );
    expect(await queryOnce(connection, functions)).toEqual([{ count: 0 }]);
  });

  it('copy the jobs of 0.2.0, and drop the schema that had them', async () => {
    const connection = await emptyDatabase();
    await queryOnce(connection, readFileSync(join(migrationsFolder, '0000_initial.sql'), 'utf8'));
    await queryOnce(connection, jobsOfRelease);
    await migrate(connection);
    expect(await queryOnce(connection, `select to_regnamespace('graphile_worker') as name`)).toEqual([{ name: null }]);
    const jobs =
      'select kind, id, queue, client_id, priority, attempts, locked_by, run_at <= now() as due from jobs order by 1, 2';
    const waiting = { attempts: 0, locked_by: null };
    expect(await queryOnce(connection, jobs)).toEqual([
      { kind: 'deliver', id: deliveryId, queue: 'notifications', client_id: 7, priority: 0, due: false, ...waiting },
      { kind: 'file_share', id: 'a', queue: 'region:1', client_id: 7, priority: 3, due: true, ...waiting },
      { kind: 'file_share', id: 'b', queue: 'region:2', client_id: 0, priority: 30000, due: true, ...waiting },
      { kind: 'quota_alert', id: '7', queue: 'notifications', client_id: 7, priority: 0, due: false, ...waiting },
    ]);
  });
});
