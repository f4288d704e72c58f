import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { createReleasedSchema } from '../../test/upgrades/release.ts';
import { migrationsIn } from '../backup/migrations.ts';
import type { ConnectionOptions } from '../platform/db.ts';
import { migrate, migrationsFolder } from './migrate.ts';
import { breakingMigrations, checkOlderProcesses } from './older-processes.ts';
import { emptyDatabase, queryOnce } from './test-migrations.ts';

const all = migrationsIn(migrationsFolder).list.map(({ migration }) => migration);

/** A database whose newest migration is this one. */
async function databaseAt(newest: string): Promise<ConnectionOptions> {
  const connection = await emptyDatabase();
  const client = new pg.Client(connection);
  await client.connect();
  await createReleasedSchema(client, newest).finally(() => client.end());
  return connection;
}

async function session(connection: ConnectionOptions, name: string): Promise<pg.Client> {
  const client = new pg.Client({ ...connection, application_name: name });
  // The database is dropped while it is connected.
  client.on('error', () => {});
  await client.connect();
  return client;
}

/** As a start and every command do. Returns what they report. */
async function migrateBeside(connection: ConnectionOptions, force = false): Promise<string[]> {
  const lines: string[] = [];
  const report = (line: string) => void lines.push(line);
  await migrate(connection, (_, pending) => checkOlderProcesses(connection, { pending, force, report }), report);
  return lines;
}

const newestOf = async (connection: ConnectionOptions) =>
  (await queryOnce(connection, 'select max(created_at)::text as newest from drizzle.__drizzle_migrations'))[0];

describe('a migration that breaks processes of the version before it', () => {
  it('is refused while they are connected, and changes nothing', async () => {
    const connection = await databaseAt('0000_initial');
    const before = await newestOf(connection);
    const old = await session(connection, 'cloudyard api');
    await session(connection, 'cloudyard notifier');
    await expect(migrateBeside(connection)).rejects.toThrow(
      /^the database was not migrated, because .* older version use it .*: cloudyard api.*; cloudyard notifier.*; stop them first; .* migrate --force$/,
    );
    expect(await newestOf(connection)).toEqual(before);
    await old.end();
    await expect(migrateBeside(connection)).rejects.toThrow('use it and would fail: cloudyard notifier');
    expect(await migrateBeside(connection, true)).toEqual([
      expect.stringMatching(
        /^processes of an older version use the database and fail after the migration; stop them: /,
      ),
    ]);
    expect(await newestOf(connection)).not.toEqual(before);
  });

  it('waits a moment for the end of their sessions', async () => {
    const connection = await databaseAt('0000_initial');
    const old = await session(connection, 'cloudyard worker');
    const migrated = migrateBeside(connection);
    setTimeout(() => void old.end(), 500);
    expect(await migrated).toEqual([]);
  });

  it('runs while processes of this version start, and other programs are connected', async () => {
    const connection = await databaseAt('0000_initial');
    // A start holds the lock of its data directory before it migrates.
    await session(connection, 'cloudyard worker, process 7 on h1');
    await session(connection, 'cloudyard migrate');
    await session(connection, 'psql');
    await Promise.all([migrateBeside(connection), migrateBeside(connection)]);
  });
});

it('a migration that only adds runs and reports the processes of an older version', async () => {
  const connection = await databaseAt(all.at(-2)!);
  expect(breakingMigrations).not.toContain(all.at(-1));
  await session(connection, 'cloudyard agent');
  expect(await migrateBeside(connection)).toEqual([
    expect.stringMatching(/cannot start again; replace them soon: cloudyard agent/),
  ]);
  // Processes of this version that start later.
  await session(connection, 'cloudyard api');
  expect(await migrateBeside(connection)).toEqual([]);
});
