/**
 * Empties a folder in which clients create files meanwhile.
 *
 * Invariant: nothing outside of the folder is removed. `rm` of Node finds the files of a folder by its path, so that a client who
 * replaces the folder by a symbolic link during the removal makes root remove files of the host. Here each path is a name in a folder
 * that is open, and a folder is opened without following links.
 */
import { constants, type FileHandle, open, readdir, rmdir, unlink } from 'node:fs/promises';
import { succeeds } from '../platform/succeeds.ts';

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;
const openFolder = (path: string | Buffer) => open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);

/** Files that clients move or create meanwhile may stay. @throws Error of the system call if the folder cannot be read */
export async function emptyFolder(path: string): Promise<void> {
  await using folder = await openFolder(path);
  await emptyOpen(folder);
}

async function emptyOpen({ fd }: FileHandle): Promise<void> {
  const place = `/proc/self/fd/${fd}`;
  // Names are bytes: clients need not encode them in UTF-8.
  for (const name of await readdir(place, { encoding: 'buffer' })) {
    const path = Buffer.concat([Buffer.from(`${place}/`), name]);
    if (!(await succeeds(unlink(path)))) await removeFolder(path);
  }
}

async function removeFolder(path: Buffer): Promise<void> {
  // Null: it was removed, or replaced by a link, meanwhile.
  await using folder = await openFolder(path).catch(() => null);
  if (folder) await emptyOpen(folder);
  await succeeds(rmdir(path));
}
