/** Files that survive a crash of the host: written under another name, synced, renamed; and the folder synced, too. */
import { chown, mkdir, open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

export interface Owner {
  uid: number;
  gid: number;
}

/** What a name ends in until its content is whole. Only a crash leaves one. */
export const UNFINISHED = '.unfinished';

/** `owner`: the account that may change it. */
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

/** Makes a folder, and those above it that are missing, for an account. */
export async function makeFolder(path: string, owner: Owner | null): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (!first || !owner) return;
  for (let made = path; made.length >= first.length; made = dirname(made)) await chown(made, owner.uid, owner.gid);
}

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
