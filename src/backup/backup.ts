/** Makes a backup while servers and workers run. */
import { readFile } from 'node:fs/promises';
import type pg from 'pg';
import type { ConnectionOptions } from '../platform/db.ts';
import { withUnlimitedClient } from '../platform/with-client.ts';
import type { BackupSink } from './block-store.ts';
import { beginSnapshot, copySequences, copyTables } from './database-copy.ts';
import {
  BackupError,
  backupIdOf,
  type ConfigurationCopy,
  type FileCopy,
  formatVersion,
  type Manifest,
} from './format.ts';
import { type KeyProtection, sealKeys } from './key-envelope.ts';
import { type Migrations, requireKnown, schemaOf } from './migrations.ts';

/** Serializes backups of one database, because pruning must not run beside one. */
const backupLock = 0x636c6f75_62;

export interface BackupOptions {
  connection: ConnectionOptions;
  migrations: Migrations;
  version: string;
  reason: Manifest['reason'];
  keyFile: string;
  /** Null: the keys are not in the backup. */
  protection: KeyProtection | null;
  configuration: ConfigurationCopy[];
  /** Copies the data of tenants; null: without it. Called after the database was copied. */
  copyFiles: ((sink: BackupSink) => Promise<FileCopy[]>) | null;
}

/** Another backup of the database is running. */
export class BackupRunning extends BackupError {}

/** Waits for other backups to end, and reports that first; absent: fails with `BackupRunning`. */
type OnOtherBackup = (text: string) => void;

/**
 * Runs `work` under the lock that excludes other backups of the database.
 * @throws BackupRunning without `onOther`
 */
export function withBackupLock<T>(
  connection: ConnectionOptions,
  { onOther }: { onOther?: OnOtherBackup },
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  return withUnlimitedClient({ ...connection, application_name: 'cloudyard backup' }, async (client) => {
    const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [backupLock]);
    if (!rows[0]!.taken) {
      if (!onOther) throw new BackupRunning('another backup of this database is running; try again when it has ended');
      onOther('waiting until another backup of this database has ended');
      await client.query('select pg_advisory_lock($1)', [backupLock]);
    }
    return work(client);
  });
}

/**
 * Makes a backup under the lock that excludes other backups of the database. Without `onOther` it does not wait for them.
 * @throws BackupError; the store then has no manifest of this backup
 */
export function makeBackup(options: BackupOptions, sink: BackupSink, onOther?: OnOtherBackup): Promise<Manifest> {
  return withBackupLock(options.connection, { onOther }, (client) => writeBackup(client, options, sink));
}

/** As `makeBackup`; the caller holds the lock with this client. */
export async function writeBackup(client: pg.Client, options: BackupOptions, sink: BackupSink): Promise<Manifest> {
  const manifest = await copyAll(client, options, sink);
  await requireLock(client);
  await sink.putManifest(manifest);
  return manifest;
}

/**
 * The lock ends with its connection. Without the lock another backup may have pruned blocks of this one.
 * @throws BackupError
 */
async function requireLock(client: pg.Client): Promise<void> {
  await client.query('select 1').catch((cause: unknown) => {
    throw new BackupError('the connection to the database ended during the backup; make another backup', { cause });
  });
}

async function copyAll(client: pg.Client, options: BackupOptions, sink: BackupSink): Promise<Manifest> {
  const { migrations, version, reason, protection, configuration, copyFiles } = options;
  await beginSnapshot(client);
  const schema = await schemaOf(client, migrations);
  if (!schema) throw new BackupError('the database is empty: Cloudyard has not been started with it');
  requireKnown(migrations, schema, 'the database', version);
  const now = new Date();
  const id = backupIdOf(now);
  const keyText = protection && (await readKeys(options.keyFile));
  const keys = keyText && (await sealKeys(keyText, id, protection!));
  const tables = await copyTables(client, sink);
  const sequences = await copySequences(client);
  // Ends the snapshot, which keeps PostgreSQL from removing dead rows. The lock belongs to the session.
  await client.query('commit');
  const files = copyFiles && (await copyFiles(sink));
  const createdAt = now.toISOString();
  const head = { format: formatVersion, id, createdAt, version, schema, reason } as const;
  return { ...head, tables, sequences, configuration, keys, files };
}

/** Null if nothing has been encrypted yet. */
async function readKeys(file: string): Promise<Buffer | null> {
  try {
    return await readFile(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    throw new BackupError(`the key file ${file} cannot be read (${code})`, { cause: error });
  }
}
