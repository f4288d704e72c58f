/** Files that survive a crash of the host: written under another name, synced, renamed; and the folder synced, too. */
import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

/** What a name ends in until its content is whole. Only a crash leaves one. */
export const UNFINISHED = '.unfinished';

export async function writeDurably(path: string, text: string): Promise<void> {
  const unfinished = `${path}${UNFINISHED}`;
  const file = await open(unfinished, 'w', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await renameDurably(unfinished, path);
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
