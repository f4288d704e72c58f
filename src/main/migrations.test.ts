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
