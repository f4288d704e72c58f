/**
 * Writes files that survive a crash of the host: write to a temporary name, sync, rename, sync the folder. Reads what a crash
 * left. `replaceText` is for files that a start writes again, so it does not sync.
 */
import { chown, type FileHandle, mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { hostError } from './command.ts';
import { DriverError } from './driver.ts';

export interface Owner {
  uid: number;
  gid: number;
}

/** Suffix of a file that is not complete yet. Only a crash leaves one behind. */
export const UNFINISHED = '.unfinished';

/** Removes the unfinished files and folders that a crash left in a folder. */
export async function removeUnfinished(folder: string): Promise<void> {
  const left = (await readdir(folder)).filter((name) => name.endsWith(UNFINISHED));
  for (const name of left) await rm(join(folder, name), { recursive: true, force: true });
}

/** Bytes of a file; null: it does not exist. @throws DriverError if that is not known */
export async function sizeOf(path: string): Promise<number | null> {
  try {
    return (await stat(path)).size;
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw hostError(`cannot read ${path}: ${(err as Error).message}`, err);
  }
}

/** Has `write` create a file under a temporary name, and durably renames it to `path`, replacing an existing file. */
export async function replaceFile(path: string, write: (unfinished: string) => Promise<void>): Promise<void> {
  const unfinished = `${path}${UNFINISHED}`;
  try {
    await rm(unfinished, { force: true });
    await write(unfinished);
    await syncPath(unfinished);
    await renameDurably(unfinished, path);
  } catch (err) {
    await rm(unfinished, { force: true });
    throw hostError(`cannot write ${path}: ${(err as Error).message}`, err);
  }
}

/** How the system and Node refuse to extend a file beyond the maximum size. */
const tooLarge = ['EFBIG', 'EINVAL', 'ERR_OUT_OF_RANGE'];

/**
 * Extends a file to at least `bytes`, with a hole that reads as zeros. `what`: what it stores, for the client.
 * @throws DriverError, permanent, if the filesystem cannot hold a file of this size
 */
export async function extendFile(file: FileHandle, bytes: number, what: 'file share' | 'volume'): Promise<void> {
  if ((await file.stat()).size >= bytes) return;
  try {
    await file.truncate(bytes);
  } catch (cause) {
    if (!tooLarge.includes((cause as NodeJS.ErrnoException).code ?? '')) throw cause;
    throw new DriverError(`the filesystem cannot hold a file of ${bytes} bytes`, {
      customerMessage: `the storage host cannot store a ${what} of this size`,
      retryable: false,
      cause,
    });
  }
}

/** Replaces a file, with mode 0600; readers see the old text or the new one. `owner`: the account that can change it. */
export async function writeDurably(path: string, text: string, owner: Owner | null = null): Promise<void> {
  const unfinished = `${path}${UNFINISHED}`;
  const file = await open(unfinished, 'w', 0o600);
  try {
    await file.writeFile(text);
    if (owner) await file.chown(owner.uid, owner.gid);
    await file.sync();
  } finally {
    await file.close();
  }
  await renameDurably(unfinished, path);
}

/** As `writeDurably`, but leaves a file that has this text, and belongs to the owner, as it is: the disk may be full. */
export async function ensureDurably(path: string, text: string, owner: Owner | null = null): Promise<void> {
  const isEqual = (await readFile(path, 'utf8').catch(() => null)) === text;
  if (!isEqual || (owner && !(await belongsTo(path, owner)))) await writeDurably(path, text, owner);
}

/**
 * For files that a start writes again: replaces one, with mode 0600, without a sync. A file that has this text is not written,
 * because the disk may be full. Returns whether it differed.
 */
export async function replaceText(path: string, text: string): Promise<boolean> {
  if ((await readFile(path, 'utf8').catch(() => null)) === text) return false;
  await writeFile(`${path}${UNFINISHED}`, text, { mode: 0o600 });
  await rename(`${path}${UNFINISHED}`, path);
  return true;
}

/** Whether the account, and no other one, can read and change the file. */
async function belongsTo(path: string, owner: Owner): Promise<boolean> {
  const { uid, gid, mode } = await stat(path);
  return uid === owner.uid && gid === owner.gid && (mode & 0o777) === 0o600;
}

/** Creates a folder and its missing parents for an account. */
export async function makeFolder(path: string, owner: Owner | null): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (!first || !owner) return;
  for (let folder = path; folder.length >= first.length; folder = dirname(folder)) {
    await chown(folder, owner.uid, owner.gid);
  }
}

/** When it resolves, the new name survives a crash of the host. */
export async function renameDurably(from: string, to: string): Promise<void> {
  await rename(from, to);
  await syncPath(dirname(to));
  if (dirname(from) !== dirname(to)) await syncPath(dirname(from));
}

/** Makes new folders in `root`, and `root` itself, durable: a power loss would remove them with the synced files in them. */
export async function syncNewFolders(root: string): Promise<void> {
  for (const folder of [root, dirname(root)]) await syncPath(folder);
}

/** Syncs a file or a folder. */
export async function syncPath(path: string): Promise<void> {
  await using file = await open(path, 'r');
  await file.sync();
}
