/**
 * Restores a backup into an empty installation.
 *
 * Invariant: the transaction that loads the rows commits last. Files are staged in `restoring/` of the data directory and
 * moved to their places before the commit; `restoring/targets.json` names these places. So a restore that was interrupted
 * before it leaves an empty database, and the next restore removes what the interrupted one had moved.
 */
import { lstatSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type pg from 'pg';
import type { ConnectionOptions } from '../platform/db.ts';
import { removeTree } from '../platform/empty-folder.ts';
import { withClient, withUnlimitedClient } from '../platform/with-client.ts';
import { type BackupSource, explained, syncFolder, writeNew } from './block-store.ts';
import { loadTables, setSequences } from './database-copy.ts';
import { BackupError, blocksOf, type Manifest, pathBytesOf } from './format.ts';
import { type KeyOpener, openKeys } from './key-envelope.ts';
import { createSchema, hasSchema, migrationLock, type Migrations, requireKnown } from './migrations.ts';
import { writeFiles } from './restored-files.ts';

/** Of connections to the database. */
export const applicationName = 'cloudyard restore';
/** In the data directory. */
const stagingFolder = 'restoring';
const targetsFile = 'targets.json';
/** Permitted in the data directory of an empty installation: the embedded database, backups, and temporary folders. */
const harmless = /^(postgres(\.log|ql-.*)?|backups|restoring|lost\+found|\.(moving|unpacked)-.*)$/;

/** The database in a backup. */
export interface DatabaseCopy {
  source: BackupSource;
  manifest: Manifest;
  migrations: Migrations;
}

export interface RestoreOptions extends DatabaseCopy {
  version: string;
  dataDir: string;
  keyFile: string;
  opener: KeyOpener;
}

/**
 * Checks all that can be checked without a change: versions, every block, the keys.
 * Returns the decrypted keys; null: the backup has none. @throws BackupError
 */
export async function checkBackup(options: RestoreOptions): Promise<Buffer | null> {
  const { source, manifest, migrations, version, opener } = options;
  requireKnown(migrations, manifest.schema, `backup ${manifest.id} of Cloudyard ${manifest.version}`, version);
  requireInside(manifest);
  for (const hash of new Set(blocksOf(manifest))) await source.block(hash);
  return manifest.keys && openKeys(manifest.keys, manifest.id, opener);
}

/**
 * Backups may be stored where others can write, and a restore runs as root.
 * @throws BackupError for a file that the restore would write outside of the data directory
 */
function requireInside({ id, files, configuration }: Manifest): void {
  // Bytes, because two texts of different encodings may be the same path.
  const links = new Set((files ?? []).filter(({ link }) => link !== undefined).map(pathBytesOf));
  const inside = new Set<string>();
  const isInside = (path: string) => {
    for (let above = path; !inside.has(above); ) {
      const end = above.lastIndexOf('/');
      if (['', '.', '..'].includes(above.slice(end + 1)) || (above !== path && links.has(above))) return false;
      if (end === -1) break;
      above = above.slice(0, end);
    }
    // Of the next file of this folder, nothing else remains to be checked.
    const end = path.lastIndexOf('/');
    if (end !== -1) inside.add(path.slice(0, end));
    return true;
  };
  const outside =
    files?.find((file) => !isInside(pathBytesOf(file)))?.path ??
    configuration.find(({ name }) => basename(name) !== name)?.name;
  if (outside === undefined) return;
  throw new BackupError(`backup ${id} has a file ${JSON.stringify(outside)} outside of the data directory`);
}

/**
 * Files of an interrupted restore do not count; `restoreBackup` removes them if that restore did not commit.
 * @throws BackupError if the data directory is not empty, or the restore would replace the key file
 */
export async function requireEmptyDirectory({ dataDir, keyFile, manifest }: RestoreOptions): Promise<void> {
  const interrupted = new Set(await interruptedTargets(dataDir));
  const found = (await readdir(dataDir).catch(() => [])).filter((name) => {
    const path = join(dataDir, name);
    return !harmless.test(name) && !interrupted.has(path) && path !== keyFile;
  });
  if (found.length > 0) {
    throw new BackupError(
      `the data directory ${dataDir} is not empty (${found.slice(0, 3).join(', ')}); restore into an empty one`,
    );
  }
  const replacesKeys = manifest.keys || manifest.files?.some(({ path }) => placeOf(path, dataDir) === keyFile);
  // A link counts, also one to a disk that is not mounted.
  if (replacesKeys && lstatSync(keyFile, { throwIfNoEntry: false }) && !interrupted.has(keyFile))
    throw new BackupError(`the key file ${keyFile} exists; move it away before the restore`);
}

/** @throws BackupError if the database has tables */
export async function requireEmptyDatabase(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ count: number }>(
    `select count(*)::int as count from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind = 'r' and n.nspname in ('public', 'drizzle')`,
  );
  if (rows[0]!.count > 0) throw new BackupError(`the database is not empty: it has ${rows[0]!.count} tables`);
}

/**
 * The caller has checked the backup and the data directory (`checkBackup`, `requireEmptyDirectory`). Afterwards the schema is
 * that of the backup. Waits while a server migrates the database.
 * @throws BackupError if the database has tables; a failure before the commit leaves it and the data directory empty
 */
export function restoreBackup(
  options: RestoreOptions & { connection: ConnectionOptions; keys: Buffer | null },
): Promise<void> {
  const { dataDir, connection } = options;
  return withUnlimitedClient({ ...connection, application_name: applicationName }, async (client) => {
    await client.query('begin');
    // A server that starts meanwhile waits, and migrates the restored database.
    await client.query('select pg_advisory_xact_lock($1)', [migrationLock]);
    await requireEmptyDatabase(client);
    await loadAll(client, options);
    const folders = options.keys ? [dataDir, dirname(options.keyFile)] : [dataDir];
    // Makes the renames durable, and what was written before them.
    await Promise.all(folders.map(syncFolder));
    // If the outcome is unknown, the files stay: the next start or restore sees which it was (`finishInterrupted`).
    await client.query('commit');
    await removeTree(join(dataDir, stagingFolder));
    await client.query('analyze');
  });
}

/** Loads the rows in the open transaction and moves the files to their places. Removes the files if that fails. */
async function loadAll(client: pg.Client, options: RestoreOptions & { keys: Buffer | null }): Promise<void> {
  const { source, manifest, migrations, dataDir, keys } = options;
  // The database is empty: the interrupted restore did not commit.
  await removeInterrupted(dataDir);
  try {
    await loadDatabase(client, { source, manifest, migrations });
    for (const { from, to } of await stage(options, keys)) {
      await mkdir(dirname(to), { recursive: true });
      await rename(from, to);
    }
  } catch (error) {
    await removeInterrupted(dataDir);
    throw error;
  }
}

/** Creates the schema of the backup and loads its rows, in the open transaction of the client. */
export async function loadDatabase(client: pg.Client, { source, manifest, migrations }: DatabaseCopy): Promise<void> {
  await createSchema(client, migrations, manifest.schema);
  await loadTables(client, manifest.tables, source);
  await setSequences(client, manifest.sequences);
}

/** The places that an interrupted restore was to fill. */
async function interruptedTargets(dataDir: string): Promise<string[]> {
  const text = await readFile(join(dataDir, stagingFolder, targetsFile), 'utf8').catch(() => '[]');
  try {
    return JSON.parse(text);
  } catch {
    // The list was cut short by a crash. Nothing is moved before it is complete.
    return [];
  }
}

/** Removes the files of a restore that did not commit. */
async function removeInterrupted(dataDir: string): Promise<void> {
  for (const target of await interruptedTargets(dataDir)) await removeTree(target);
  await removeTree(join(dataDir, stagingFolder));
}

interface Move {
  from: string;
  to: string;
}

/** The folder or file of the data directory that a restored file is moved with. */
const placeOf = (path: string, dataDir: string) => join(dataDir, path.split('/', 1)[0]!);

/** Writes the key file, the configuration and the files below `restoring/`. Returns where to move them. */
async function stage({ manifest, source, dataDir, keyFile }: RestoreOptions, keys: Buffer | null): Promise<Move[]> {
  const staging = join(dataDir, stagingFolder);
  await removeTree(staging);
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  // Not recursive: fails for a link.
  await mkdir(staging, { mode: 0o700 });
  await mkdir(join(staging, 'files'));
  // On the filesystem of its target, because a rename does not leave a filesystem.
  const keysFrom = `${keyFile}.restoring`;
  const folders = new Set((manifest.files ?? []).map(({ path }) => placeOf(path, dataDir)));
  // Without keys in the backup, the key file is that of the operator.
  const targets = [...(keys ? [keyFile, keysFrom] : []), join(dataDir, 'restored-configuration'), ...folders];
  await writeFile(join(staging, targetsFile), JSON.stringify(targets), { flush: true });
  const moves: Move[] = [];
  if (keys) {
    await mkdir(dirname(keyFile), { recursive: true });
    await writeNew(keysFrom, keys);
    moves.push({ from: keysFrom, to: keyFile });
  }
  await mkdir(join(staging, 'configuration'));
  for (const { name, text } of manifest.configuration) await writeFile(join(staging, 'configuration', name), text);
  moves.push({ from: join(staging, 'configuration'), to: join(dataDir, 'restored-configuration') });
  await explained(dataDir, () => writeFiles(join(staging, 'files'), manifest.files ?? [], source), 'restored');
  for (const name of await readdir(join(staging, 'files'))) {
    moves.push({ from: join(staging, 'files', name), to: join(dataDir, name) });
  }
  return moves;
}

/** Removes the staging folder of a restore that committed. Returns false if it did not, because the database is empty. */
export async function finishInterrupted(dataDir: string, connection: ConnectionOptions): Promise<boolean> {
  const isCommitted = await withClient({ ...connection, application_name: applicationName }, hasSchema);
  if (isCommitted) await removeTree(join(dataDir, stagingFolder));
  return isCommitted;
}
