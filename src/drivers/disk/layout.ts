/**
 * The paths of images. Only this module puts ids into paths, and it rejects ids that are not UUIDs.
 *
 * Invariant: an image gets its final name when it is complete: it is written under a temporary name, synced and renamed, and
 * the folder is synced.
 */
import { mkdir, open } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { extendFile, syncNewFolders } from '../durable-files.ts';
import { checkedId, hasIds } from '../id-files.ts';

export type Layout = ReturnType<typeof layoutOf>;

export const ENDING = '.raw';

/** The paths below `volumes` of a data directory. Its functions throw a permanent DriverError for ids that are not UUIDs. */
export function layoutOf(dataDir: string) {
  const root = join(resolve(dataDir), 'volumes');
  const image = (folder: string, id: string) => join(root, folder, `${checkedId(id, 'a volume or snapshot')}${ENDING}`);
  return {
    root,
    volumes: join(root, 'images'),
    snapshots: join(root, 'snapshots'),
    quarantine: join(root, 'quarantine'),
    volume: (id: string) => image('images', id),
    snapshot: (id: string) => image('snapshots', id),
  };
}

/** Creates the folders, durably. `areSynced`: folders that exist need no sync, because the start made it. */
export async function makeFolders(
  { root, volumes, snapshots, quarantine }: Layout,
  { areSynced }: { areSynced: boolean },
): Promise<void> {
  // 0700: other users of this host must not read images.
  const made = [await mkdir(root, { recursive: true, mode: 0o700 })];
  for (const folder of [volumes, snapshots, quarantine]) made.push(await mkdir(folder, { recursive: true }));
  if (!areSynced || made.some((path) => path !== undefined)) await syncNewFolders(root);
}

/** Durably extends a file to at least `bytes`, as `extendFile`. Creates a missing one. @throws DriverError */
export async function extend(path: string, bytes: number): Promise<void> {
  await using file = await open(path, 'a+', 0o600);
  await extendFile(file, bytes, 'volume');
  await file.sync();
}

/** Whether a data directory contains volumes or snapshots. Starts nothing. */
export async function hasVolumes(dataDir: string): Promise<boolean> {
  const { volumes, snapshots } = layoutOf(dataDir);
  return (await hasIds(volumes, ENDING)) || hasIds(snapshots, ENDING);
}
