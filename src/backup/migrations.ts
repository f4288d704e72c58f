/** The migrations of this version, and which of them a database has. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import { BackupError, type SchemaVersion } from './format.ts';

/** Advisory lock that serializes migrations, and excludes them while a command replaces the contents of the database. */
export const migrationLock = 0x636c6f75_6d;

export interface Migrations {
  /** Oldest first. */
  list: SchemaVersion[];
  statementsOf(version: SchemaVersion): string[];
}

/** Reads the journal of a folder that Drizzle Kit generated. @throws if it cannot be read */
export function migrationsIn(folder: string): Migrations {
  const journal = JSON.parse(readFileSync(join(folder, 'meta', '_journal.json'), 'utf8')) as {
    entries: { tag: string; when: number }[];
  };
  return {
    list: journal.entries.map(({ tag, when }) => ({ migration: tag, when })),
    statementsOf: ({ migration }) =>
      readFileSync(join(folder, `${migration}.sql`), 'utf8').split('--> statement-breakpoint'),
  };
}

/** The newest migration of the database; null for a database without tables of Cloudyard. */
export async function schemaOf(client: pg.Client, { list }: Migrations): Promise<SchemaVersion | null> {
  if (!(await hasSchema(client))) return null;
  const { rows } = await client.query<{ when: string | null }>(
    'select max(created_at)::text as when from drizzle.__drizzle_migrations',
  );
  if (rows[0]!.when === null) return null;
  const when = Number(rows[0]!.when);
  return list.find((each) => each.when === when) ?? { migration: 'unknown', when };
}

/** Whether migrations have run in the database. */
export async function hasSchema(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query(`select to_regclass('drizzle.__drizzle_migrations') as name`);
  return rows[0].name !== null;
}

/** @throws BackupError for a schema that this version does not know */
export function requireKnown({ list }: Migrations, schema: SchemaVersion, its: string, version: string): void {
  if (list.some(({ when }) => when === schema.when)) return;
  const newest = list.at(-1)!;
  const newer = schema.when > newest.when ? 'is newer than' : 'is unknown to';
  throw new BackupError(
    `${its} has schema ${schema.migration}, which ${newer} schema ${newest.migration} of Cloudyard ${version}`,
  );
}

/**
 * Creates the schema up to a version in an empty database, in the open transaction of the client. Leaves the list of migrations
 * that ran empty: its rows are in the backup.
 */
export async function createSchema(client: pg.Client, migrations: Migrations, upTo: SchemaVersion): Promise<void> {
  // The table in which Drizzle's migrator records what it has run.
  await client.query(
    `create schema if not exists drizzle;
     create table if not exists drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint)`,
  );
  for (const each of migrations.list) {
    if (each.when > upTo.when) return;
    for (const statement of migrations.statementsOf(each)) await client.query(statement);
  }
}
