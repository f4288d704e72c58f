/** Writes files that survive a crash of the host: write to a temporary name, sync, rename, sync the folder. */
import { chown, mkdir, open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

export interface Owner {
  uid: number;
  gid: number;
}

/** Suffix of a file that is not complete yet. Only a crash leaves one behind. */
export const UNFINISHED = '.unfinished';

/** `owner`: the account that can change the file. */
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

/** Syncs a file or a folder. */
export async function syncPath(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
