/** Migrates a database to the schema of this version. */
import { join } from 'node:path';
import { drizzle } from 'drizzle-orm/node-postgres';
import { migrate as runDrizzleMigrations } from 'drizzle-orm/node-postgres/migrator';
import type pg from 'pg';
import { migrationLock, migrationsIn, schemaOf } from '../backup/migrations.ts';
import type { ConnectionOptions } from '../platform/db.ts';
import { withUnlimitedClient } from '../platform/with-client.ts';
import { root } from '../platform/program-files.ts';
import { installTriggers, installWrites } from './services.ts';
import { version } from './version.ts';

const oldestVersion = 15;
/** Absolute path of the migrations of this version. */
export const migrationsFolder = join(root, 'migrations');

/** Is called under the lock of migrations with the names of the migrations to run. */
export type BeforeChange = (connection: ConnectionOptions, pending: string[]) => Promise<void>;

/**
 * Runs pending migrations. Many servers may call it at once. `beforeChange` is called before a database that has a schema
 * changes. `report` gets a line if another process has the lock of migrations for long.
 */
export async function migrate(
  connection: ConnectionOptions,
  beforeChange: BeforeChange | null = null,
  report: (text: string) => void = () => {},
): Promise<void> {
  await withUnlimitedClient({ ...connection, application_name: 'cloudyard migrate' }, async (client) => {
    const { rows } = await client.query<{ version: number }>(
      `select current_setting('server_version_num')::int / 10000 as version`,
    );
    if (rows[0]!.version < oldestVersion) {
      throw new Error(`PostgreSQL ${rows[0]!.version} is too old; Cloudyard requires ${oldestVersion} or newer`);
    }
    await takeMigrationLock(client, report);
    const pending = await pendingIn(client);
    if (pending.length > 0) await beforeChange?.(connection, pending);
    await runDrizzleMigrations(drizzle({ client }), { migrationsFolder });
    await installTriggers(client);
    await installWrites(client);
  });
}

/** Processes that start together have the lock for a moment each. */
const reportAfterMs = 2000;

async function takeMigrationLock(client: pg.Client, report: (text: string) => void): Promise<void> {
  const late = setTimeout(report, reportAfterMs, 'waiting until another process has migrated or replaced the database');
  // Its wait may be as long as a migration; that for the locks of tables is limited by the setting of the operator.
  await client.query('set lock_timeout = 0');
  await client.query('select pg_advisory_lock($1)', [migrationLock]).finally(() => clearTimeout(late));
  await client.query('reset lock_timeout');
}

/**
 * The names of the migrations that a database with a schema lacks; none for an empty database.
 * @throws Error for a database of a newer version, and for one of a state before 0.2.0, whose migrations were not released and
 * are gone
 */
async function pendingIn(client: pg.Client): Promise<string[]> {
  const migrations = migrationsIn(migrationsFolder);
  const schema = await schemaOf(client, migrations);
  if (!schema) return [];
  const { rows } = await client.query<{ oldest: string }>(
    'select min(created_at)::text as oldest from drizzle.__drizzle_migrations',
  );
  const [first, newest] = [migrations.list[0]!, migrations.list.at(-1)!];
  if (Number(rows[0]!.oldest) < first.when) {
    throw new Error(
      'the database was created by a version before 0.2.0, which cannot be upgraded; ' +
        'use an empty database, or another CLOUDYARD_DATA_DIR',
    );
  }
  if (schema.when > newest.when) {
    throw new Error(
      `the database was migrated by a newer version than this one (${version}, migration ${newest.migration}); ` +
        'start the newer version, or roll back with its command migrate --rollback-from FILE',
    );
  }
  return migrations.list.filter(({ when }) => when > schema.when).map(({ migration }) => migration);
}
