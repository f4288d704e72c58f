/** The rollback of a migration, and the move to another PostgreSQL. No server may use the database during either. */
import { readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { BackupSource } from '../../backup/block-store.ts';
import { isBackupId, rowCount } from '../../backup/format.ts';
import type { ConnectionOptions } from '../../platform/db.ts';
import type { Settings } from '../settings.ts';
import { withTemporaryFolder } from '../temporary-folder.ts';
import { UsageError } from '../usage-error.ts';
import { withDatabase, withSource } from './backups.ts';
import { print } from './with-services.ts';

/** `file` is the manifest of a backup, or an archive of one. */
export async function rollBack(settings: Settings, file: string): Promise<void> {
  const path = resolve(file);
  const name = basename(path, '.json');
  const isManifest = path.endsWith('.json') && isBackupId(name);
  await withSource(settings, isManifest ? dirname(path) : path, async (source) => {
    const { makeBackup } = await import('../../backup/backup.ts');
    const { openBackupDirectory } = await import('../../backup/block-store.ts');
    const { replaceDatabase, withUnusedDatabase } = await import('../../backup/replace.ts');
    const { checkBackup } = await import('../../backup/restore.ts');
    const { backupOptions, migrations } = await import('../backups.ts');
    const { version } = await import('../version.ts');
    const id = isManifest ? name : await onlyOne(source);
    const manifest = await source.manifest(id);
    const opener = { passphrase: undefined, ageIdentityFile: undefined };
    const { dataDir, keyFile, backup } = settings;
    // The key file is unchanged, so the keys of the backup are not needed.
    await checkBackup({
      ...{ source, manifest: { ...manifest, keys: null }, migrations: migrations(), version, dataDir, keyFile, opener },
    });
    await withDatabase(settings, ({ connection }) =>
      withUnusedDatabase(connection, async () => {
        const options = backupOptions(settings, connection, 'command');
        const kept = await makeBackup(options, await openBackupDirectory(backup.dir));
        print(`backed up the current database: ${join(backup.dir, kept.id)}.json`);
        await replaceDatabase({ connection, source, manifest, migrations: migrations() });
      }),
    );
    print(
      `the database is that of ${manifest.createdAt} with schema ${manifest.schema.migration}; ` +
        'start the version of Cloudyard that made the backup or ran before the migration',
    );
  });
}

async function onlyOne(source: BackupSource): Promise<string> {
  const ids = await source.list();
  if (ids.length === 1) return ids[0]!;
  throw new UsageError('--rollback-from must name a manifest (<id>.json) or an archive of one backup');
}

/** Copies the database of the settings into the one that the file names. Arguments are public, so the URL is in a file. */
export async function moveDatabase(settings: Settings, file: string): Promise<void> {
  const [url = ''] = textOf(file).split(/\r?\n/);
  if (!/^postgres(ql)?:\/\//.test(url)) throw new UsageError(`the first line of ${file} must be a postgres:// URL`);
  const { makeBackup } = await import('../../backup/backup.ts');
  const { openBackupDirectory } = await import('../../backup/block-store.ts');
  const { fillDatabase, withUnusedDatabase } = await import('../../backup/replace.ts');
  const { backupOptions, migrations } = await import('../backups.ts');
  const { migrate } = await import('../migrate.ts');
  const copy = (from: ConnectionOptions, folder: string) =>
    withDatabase({ ...settings, databaseUrl: url }, async ({ connection, description }) => {
      const source = await openBackupDirectory(folder);
      const manifest = await makeBackup(backupOptions(settings, from, 'command'), source);
      await fillDatabase({ connection, source, manifest, migrations: migrations() });
      await migrate(connection);
      print(`copied ${rowCount(manifest)} rows of ${manifest.tables.length} tables to ${description}`);
      print('set DATABASE_URL to it for all servers, workers and commands; the old database is unchanged');
    });
  await withTemporaryFolder(settings.dataDir, 'moving', (folder) =>
    withDatabase(settings, ({ connection }) => withUnusedDatabase(connection, () => copy(connection, folder))),
  );
}

function textOf(file: string): string {
  try {
    return readFileSync(resolve(file), 'utf8');
  } catch (cause) {
    throw new UsageError(`--to ${file} cannot be read (${(cause as NodeJS.ErrnoException).code})`, { cause });
  }
}
