/** Replaces the contents of an unused database: the rollback of a migration, and the move to another server. */
import type pg from 'pg';
import type { ConnectionOptions } from '../platform/db.ts';
import { withUnlimitedClient } from '../platform/with-client.ts';
import { BackupError } from './format.ts';
import { migrationLock } from './migrations.ts';
import { applicationName, type DatabaseCopy, loadDatabase, requireEmptyDatabase } from './restore.ts';

type ReplaceOptions = DatabaseCopy & { connection: ConnectionOptions };

/**
 * Calls `work` while no server or worker uses the database. One that starts meanwhile waits for the lock of migrations.
 * @throws BackupError while servers, workers or commands use the database
 */
export function withUnusedDatabase<T>(connection: ConnectionOptions, work: () => Promise<T>): Promise<T> {
  return withUnlimitedClient({ ...connection, application_name: applicationName }, async (client) => {
    const { rows: locked } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [
      migrationLock,
    ]);
    const { rows } = await client.query<{ name: string }>(
      `select distinct application_name as name from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and application_name like 'cloudyard%' order by 1`,
    );
    const users = rows.map(({ name }) => name);
    if (locked[0]!.taken && users.length === 0) return work();
    const others = users.join(', ') || 'a migration';
    throw new BackupError(`the database is in use by ${others}; stop all servers and workers first`);
  });
}

/** Replaces schema and rows by those of the backup in one transaction, so a failure changes nothing. @throws BackupError */
export function replaceDatabase(options: ReplaceOptions): Promise<void> {
  return load(options, async (client) => {
    await client.query('drop schema if exists drizzle, cloudyard_writes cascade');
    for (const statement of await dropsOf(client)) await client.query(statement);
  });
}

/** Loads the backup in one transaction. @throws BackupError if the database has tables */
export function fillDatabase(options: ReplaceOptions): Promise<void> {
  return load(options, requireEmptyDatabase);
}

function load({ connection, ...backup }: ReplaceOptions, prepare: (client: pg.Client) => Promise<void>): Promise<void> {
  return withUnlimitedClient({ ...connection, application_name: applicationName }, async (client) => {
    await client.query('begin');
    await prepare(client);
    await loadDatabase(client, backup);
    await client.query('commit');
    await client.query('analyze');
  });
}

/** Statements that drop the tables and functions of the schema `public`, but not those of extensions. */
async function dropsOf(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ text: string }>(
    `select format('drop table if exists %I.%I cascade', n.nspname, c.relname) as text
     from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'public' and c.relkind = 'r'
       and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'e')
     union all
     select format('drop function if exists %s cascade', p.oid::regprocedure)
     from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = 'public'
       and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')`,
  );
  return rows.map(({ text }) => text);
}
