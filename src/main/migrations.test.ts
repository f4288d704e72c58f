import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { inDatabase } from '../../test/postgres.ts';
import type { ConnectionOptions } from '../platform/db.ts';
import { migrate } from './database.ts';
import { root } from './root.ts';

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
       ${readFileSync(join(folder, '0004_second_pass.sql'), 'utf8')}`,
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
});
