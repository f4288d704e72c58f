/**
 * Empties a folder in which clients create files meanwhile.
 *
 * Invariant: nothing outside of the folder is removed. `rm` of Node finds the files of a folder by its path, so that a client who
 * replaces the folder by a symbolic link during the removal makes root remove files of the host. Here each path is a name in a folder
 * that is open, and a folder is opened without following links.
 */
import { type FileHandle, rmdir, unlink } from 'node:fs/promises';
import { inFolder, namesIn, openFolder } from './open-folder.ts';
import { succeeds } from './succeeds.ts';

/** Files that clients move or create meanwhile may stay. @throws Error of the system call if the folder cannot be read */
export async function emptyFolder(path: string): Promise<void> {
  await using folder = await openFolder(path);
  await emptyOpen(folder);
}

/** As `rm -rf`, for paths of any length and names of any bytes. */
export async function removeTree(path: string): Promise<void> {
  const code = await unlink(path).then(
    () => 'ENOENT',
    (error: NodeJS.ErrnoException) => error.code,
  );
  if (code === 'ENOENT' || code === 'ENOTDIR') return;
  await emptyFolder(path);
  await rmdir(path);
}

async function emptyOpen(folder: FileHandle): Promise<void> {
  for (const name of await namesIn(folder)) {
    const path = inFolder(folder, name);
    if (!(await succeeds(unlink(path)))) await removeFolder(path);
  }
}

async function removeFolder(path: Buffer): Promise<void> {
  // Null: it was removed, or replaced by a link, meanwhile.
  await using folder = await openFolder(path).catch(() => null);
  if (folder) await emptyOpen(folder);
  await succeeds(rmdir(path));
}
