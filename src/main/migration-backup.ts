/**
 * Migrates the database of an installation, if no older process breaks, after a backup, which `migrate --rollback-from`
 * restores.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ConnectionOptions } from '../platform/db.ts';
import { shellWord } from '../platform/shell-word.ts';
import { type BeforeChange, migrate } from './migrate.ts';
import { program } from './program.ts';
import type { Settings } from './settings.ts';

/**
 * Migrates the database to the schema of this version. `report` gets lines about the backup, about processes of an older
 * version, and if it must wait. `force`: also if these processes would fail.
 * @throws Error if a restore was interrupted, older processes would fail, the backup fails, or the database cannot be migrated
 */
export async function migrateInstallation(
  settings: Settings,
  connection: ConnectionOptions,
  report: (text: string) => void,
  { force = false } = {},
): Promise<void> {
  await refuseInterruptedRestore(settings, connection);
  const backUp = backupBeforeMigration(settings, report);
  const beforeChange: BeforeChange = async (_, pending) => {
    const { checkOlderProcesses } = await import('./older-processes.ts');
    await checkOlderProcesses(connection, { pending, force, report });
    await backUp?.(connection);
  };
  await migrate(connection, beforeChange, report);
}

/**
 * Returns what `migrate` calls before it changes a database that has rows. `report` gets a line if it must wait, and one with the
 * place of the backup. Null if CLOUDYARD_BACKUP_BEFORE_MIGRATION is 0.
 */
export function backupBeforeMigration(
  settings: Settings,
  report: (text: string) => void,
): ((connection: ConnectionOptions) => Promise<void>) | null {
  if (!settings.backup.beforeMigration) return null;
  return async (connection) => {
    const { openBackupDirectory } = await import('../backup/block-store.ts');
    const { makeBackup } = await import('../backup/backup.ts');
    const { backupOptions } = await import('./backups.ts');
    const { dir } = settings.backup;
    try {
      const options = backupOptions(settings, connection, 'migration');
      const { id } = await makeBackup(options, await openBackupDirectory(dir), (text) =>
        report(`the backup before the migration is ${text}`),
      );
      const manifest = shellWord(join(dir, `${id}.json`));
      report(
        `backed up the database before its migration; to roll back: ${program} migrate --rollback-from ${manifest}`,
      );
    } catch (cause) {
      throw new Error(
        `the backup before the migration failed, so the database was not migrated: ${(cause as Error).message}; ` +
          'set CLOUDYARD_BACKUP_DIR to another place, or CLOUDYARD_BACKUP_BEFORE_MIGRATION=0 if you have a backup',
        { cause },
      );
    }
  };
}

/**
 * A restore that was interrupted leaves files of tenants without rows, which a worker would move to quarantine.
 * @throws Error if the database is empty; otherwise the restore ended, and only its cleanup is missing
 */
export async function refuseInterruptedRestore(settings: Settings, connection: ConnectionOptions): Promise<void> {
  if (!existsSync(join(settings.dataDir, 'restoring'))) return;
  const { finishInterrupted } = await import('../backup/restore.ts');
  if (await finishInterrupted(settings.dataDir, connection)) return;
  throw new Error(
    `a restore into ${settings.dataDir} was interrupted; run it again, or remove the data directory to start without data`,
  );
}
