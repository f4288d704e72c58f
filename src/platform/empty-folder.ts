/**
 * Empties a folder in which clients create files meanwhile.
 *
 * Invariant: nothing outside of the folder is removed. `rm` of Node finds the files of a folder by its path, so that a client who
 * replaces the folder by a symbolic link during the removal makes root remove files of the host. Here each path is a name in a folder
 * that is open, and a folder is opened without following links.
 */
import { randomUUID } from 'node:crypto';
import { type FileHandle, rename, rmdir, unlink } from 'node:fs/promises';
import { inFolder, namesIn, openFolder } from './open-folder.ts';
import { succeeds } from './succeeds.ts';

/** Folders that are open at the same time. */
const maxDepth = 100;

/** Files that clients move or create meanwhile may stay. @throws Error of the system call if the folder cannot be read */
export async function emptyFolder(path: string): Promise<void> {
  await using folder = await openFolder(path);
  const top = { folder, moved: 0 };
  do {
    top.moved = 0;
    await emptyOpen(folder, top, 1);
  } while (top.moved > 0);
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

interface Top {
  folder: FileHandle;
  /** Folders that were moved into it. */
  moved: number;
}

async function emptyOpen(folder: FileHandle, top: Top, depth: number): Promise<void> {
  for (const name of await namesIn(folder)) {
    const path = inFolder(folder, name);
    if (await succeeds(unlink(path))) continue;
    if (depth < maxDepth) await removeFolder(path, top, depth + 1);
    else if (await succeeds(rename(path, inFolder(top.folder, `moved-${randomUUID()}`)))) top.moved += 1;
  }
}

async function removeFolder(path: Buffer, top: Top, depth: number): Promise<void> {
  // Null: it was removed, or replaced by a link, meanwhile.
  await using folder = await openFolder(path).catch(() => null);
  if (folder) await emptyOpen(folder, top, depth);
  await succeeds(rmdir(path));
}
