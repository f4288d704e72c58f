/** `backup` and `restore`. Backups are made while servers run; a restore needs an empty installation. */
import { createReadStream, existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { BackupSink, BackupSource } from '../../backup/block-store.ts';
import { BackupError, type FileCopy, type Manifest, rowCount } from '../../backup/format.ts';
import { createDataDirectory } from '../../platform/data-directory.ts';
import { lowerPriority } from '../../platform/low-priority.ts';
import type { Settings } from '../settings.ts';
import { command, type Command } from '../command-line.ts';
import { program } from '../program.ts';
import { withTemporaryFolder } from '../temporary-folder.ts';
import { UsageError } from '../usage-error.ts';
import { createCommandLogger, note, print, printTable } from './with-services.ts';

const backup = command({
  name: 'backup',
  summary: 'Back up the installation without stopping it',
  options: {
    to: {
      type: 'string',
      value: 'DIR|-',
      description: 'where to write it; - is standard output (default CLOUDYARD_BACKUP_DIR)',
    },
    'with-data': { type: 'boolean', default: false, description: 'also the data of tenants on this host' },
    'data-dir': {
      type: 'string',
      value: 'DIR',
      description: 'with --with-data: the data directory of the worker (default CLOUDYARD_DATA_DIR)',
    },
  },
  async run(settings, { to, 'with-data': withData, 'data-dir': given }) {
    if (given !== undefined && !withData) throw new UsageError('--data-dir requires --with-data');
    const { copyFiles, hasFiles } = await import('../../backup/files.ts');
    const dataDir = given === undefined ? settings.dataDir : resolve(given);
    if (withData && !hasFiles(dataDir)) {
      throw new Error(`${dataDir} has no data of tenants; pass the data directory of the worker with --data-dir`);
    }
    const folder = to === undefined ? settings.backup.dir : resolve(to);
    const began = performance.now();
    const { makeBackup } = await import('../../backup/backup.ts');
    const { backupStream, openBackupDirectory } = await import('../../backup/block-store.ts');
    const { backupOptions } = await import('../backups.ts');
    await withDatabase(settings, async ({ connection }) => {
      // Requests of servers on the same host go first. Not earlier: an embedded PostgreSQL that was started above would
      // inherit it, and a server may use it afterwards.
      lowerPriority();
      const sink = to === '-' ? backupStream(process.stdout) : await openBackupDirectory(folder);
      const omitted: string[] = [];
      const files = (target: BackupSink) => copyFiles(dataDir, target, (path) => omitted.push(path));
      const options = backupOptions(settings, connection, 'command', withData ? files : null);
      const manifest = await makeBackup(options, sink);
      const place = to === '-' ? 'on standard output' : `in ${folder}`;
      const seconds = ((performance.now() - began) / 1000).toFixed(1);
      note(
        `backup ${manifest.id} ${place}: ${contentsOf(manifest)}; ${sizeText(sink.written())} written in ${seconds} s`,
      );
      if (!manifest.keys) note(withoutKeys(settings));
      if (omitted.length > 0) throw new Error(withoutContents(omitted));
    });
  },
});

const restore = command({
  name: 'restore',
  summary: 'Restore a backup into an empty installation',
  options: {
    from: { type: 'string', value: 'DIR|FILE|-', description: 'where the backup is (default CLOUDYARD_BACKUP_DIR)' },
    backup: { type: 'string', value: 'ID', description: 'which backup (default: the newest)' },
    list: { type: 'boolean', default: false, description: 'only list the backups' },
    'dry-run': { type: 'boolean', default: false, description: 'only verify the backup, every block of it' },
    'age-identity': { type: 'string', value: 'FILE', description: 'the identity that decrypts the keys' },
  },
  async run(settings, { from, backup: id, list, 'dry-run': isDryRun, 'age-identity': identity }) {
    if (list && isDryRun) throw new UsageError('--list conflicts with --dry-run; use only one');
    await withSource(settings, from, async (source) => {
      if (list) return printList(source);
      const { checkBackup, requireEmptyDirectory, restoreBackup } = await import('../../backup/restore.ts');
      const { keyOpener, migrations } = await import('../backups.ts');
      const { version } = await import('../version.ts');
      const manifest = await source.manifest(id ?? (await newestOf(source)));
      const { dataDir, keyFile } = settings;
      const opener = keyOpener(settings, identity);
      const options = { source, manifest, migrations: migrations(), version, dataDir, keyFile, opener };
      const keys = await checkBackup(options);
      if (isDryRun) {
        print(`backup ${manifest.id} is complete: ${contentsOf(manifest)}`);
        return;
      }
      await requireEmptyDirectory(options);
      await withDatabase(settings, async ({ connection }) => {
        await restoreBackup({ ...options, connection, keys });
        const { migrate } = await import('../migrate.ts');
        await migrate(connection);
      });
      print(`restored backup ${manifest.id} of ${manifest.createdAt}: ${contentsOf(manifest)}`);
      print(`its configuration files are in ${join(dataDir, 'restored-configuration')}`);
      const advice = existsSync(keyFile)
        ? `Cloudyard will use ${keyFile}`
        : `copy yours to ${keyFile} before you start Cloudyard`;
      if (!keys) print(`the key file is not in the backup; ${advice}`);
    });
  },
});

export const backupCommands: Command[] = [backup, restore];

function withoutKeys({ keyFile, backup }: Settings): string {
  const isProtected = backup.passphraseFile !== undefined || backup.ageRecipient !== undefined;
  if (isProtected) return `the keys are not in the backup: ${keyFile} does not exist`;
  return (
    `the keys are not in the backup: set CLOUDYARD_BACKUP_PASSPHRASE_FILE or CLOUDYARD_BACKUP_AGE_RECIPIENT, ` +
    `or store ${keyFile} in another place`
  );
}

function withoutContents(omitted: string[]): string {
  const others = omitted.length - 1;
  const more = others > 0 ? ` and of ${others} other ${others === 1 ? 'folder' : 'folders'}` : '';
  return (
    `the backup is complete except for the contents of ${omitted[0]}${more}: ` +
    'they are in more than 500 folders; copy them yourself'
  );
}

function contentsOf(manifest: Manifest): string {
  const { files, keys, schema } = manifest;
  const data = files ? `, ${fileCount(files)} files` : '';
  return `schema ${schema.migration}, ${rowCount(manifest)} rows${data}${keys ? ', keys' : ''}`;
}

/** Without folders and links. */
const fileCount = (files: FileCopy[]): number => files.filter(({ blocks }) => blocks).length;

const sizeText = (bytes: number): string =>
  bytes < 1024 * 1024 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;

async function newestOf(source: BackupSource): Promise<string> {
  const newest = (await source.list()).at(-1);
  if (newest === undefined) throw new Error(`no backup found; create one with: ${program} backup`);
  return newest;
}

async function printList(source: BackupSource): Promise<void> {
  const rows: unknown[][] = [['ID', 'REASON', 'VERSION', 'SCHEMA', 'ROWS', 'FILES', 'KEYS']];
  for (const id of await source.list()) {
    try {
      const manifest = await source.manifest(id);
      const { reason, version, schema, files, keys } = manifest;
      const count = files ? fileCount(files) : '-';
      rows.push([id, reason, version, schema.migration, rowCount(manifest), count, keys?.method ?? '-']);
    } catch (error) {
      // The others can be restored.
      if (!(error instanceof BackupError)) throw error;
      note(error.message);
    }
  }
  printTable(rows);
}

/** Opens a directory of backups, or unpacks an archive into the data directory for the time of `work`. */
export async function withSource(
  settings: Settings,
  from: string | undefined,
  work: (source: BackupSource) => Promise<void>,
): Promise<void> {
  const { readBackupDirectory, unpackBackup } = await import('../../backup/block-store.ts');
  const path = from === undefined ? settings.backup.dir : resolve(from);
  if (from !== '-' && statSync(path, { throwIfNoEntry: false })?.isFile() !== true) {
    if (from === undefined && !existsSync(path)) {
      throw new Error(`${path} does not exist; pass the directory or archive of the backups with --from`);
    }
    return work(await readBackupDirectory(path));
  }
  await withTemporaryFolder(settings.dataDir, 'unpacked', async (folder) =>
    work(await unpackBackup(from === '-' ? process.stdin : createReadStream(path), folder)),
  );
}

/** Opens the database for `work`, without migrating it, and closes it afterwards. */
export async function withDatabase(
  settings: Settings,
  work: (database: import('../database.ts').Database) => Promise<void>,
): Promise<void> {
  const { openDatabase } = await import('../database.ts');
  createDataDirectory(settings.dataDir);
  const database = await openDatabase(settings, await createCommandLogger(settings));
  try {
    await work(database);
  } finally {
    await database.close();
  }
}
