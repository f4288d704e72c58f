/**
 * Where images lie. The only place that puts an id into a path, and so the place that refuses one that is not a UUID.
 *
 * An image gets its name when it is whole: it is written under another one, synced, renamed, and the folder is synced.
 */
import { existsSync } from 'node:fs';
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { hostError } from '../command.ts';
import { DriverError } from '../driver.ts';
import { renameDurably, syncPath, UNFINISHED } from '../durable-files.ts';

export interface Layout {
  root: string;
  volumes: string;
  snapshots: string;
  quarantine: string;
  volume(id: string): string;
  snapshot(id: string): string;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
export const ENDING = '.raw';

export function layoutOf(dataDir: string): Layout {
  const root = join(resolve(dataDir), 'volumes');
  const image = (folder: string, id: string) => join(root, folder, `${checkedId(id)}${ENDING}`);
  return {
    root,
    volumes: join(root, 'images'),
    snapshots: join(root, 'snapshots'),
    quarantine: join(root, 'quarantine'),
    volume: (id) => image('images', id),
    snapshot: (id) => image('snapshots', id),
  };
}

function checkedId(id: string): string {
  if (UUID.test(id)) return id;
  throw new DriverError(`not the id of a volume or snapshot: ${JSON.stringify(id)}`, {
    customerMessage: 'The storage host refused this.',
    retryable: false,
  });
}

/** Makes the folders, and clears away what a crash left unfinished. */
export async function prepareFolders({ root, volumes, snapshots, quarantine }: Layout): Promise<void> {
  // 0700: images are for whoever runs Cloudyard, not for other users of this host.
  await mkdir(root, { recursive: true, mode: 0o700 });
  for (const folder of [volumes, snapshots, quarantine]) {
    await mkdir(folder, { recursive: true });
    const left = (await readdir(folder)).filter((name) => name.endsWith(UNFINISHED));
    for (const name of left) await rm(join(folder, name), { force: true });
  }
  await syncPath(root);
  await syncPath(dirname(root));
}

export async function idsIn(folder: string): Promise<string[]> {
  const names = await readdir(folder);
  return names
    .filter((name) => name.endsWith(ENDING))
    .map((name) => name.slice(0, -ENDING.length))
    .filter((id) => UUID.test(id))
    .sort();
}

/** Bytes of an image; null: there is none. */
export async function sizeOf(path: string): Promise<number | null> {
  try {
    return (await stat(path)).size;
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw hostError(`cannot look at ${path}: ${(err as Error).message}`, err);
  }
}

/** Has `write` make a file under another name; when that is durable it gets its own, in the place of what had it. */
export async function putInPlace(path: string, write: (unfinished: string) => Promise<void>): Promise<void> {
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

/** Makes a file exactly or at least so long: the rest is a hole, which reads as zeros. Durable. */
export async function lengthen(path: string, bytes: number): Promise<void> {
  const file = await open(path, 'a+', 0o600);
  try {
    if ((await file.stat()).size < bytes) await file.truncate(bytes);
    await file.sync();
  } catch (err) {
    if (!['EFBIG', 'ERR_OUT_OF_RANGE', 'EINVAL'].includes((err as NodeJS.ErrnoException).code ?? '')) throw err;
    throw new DriverError(`no file of ${bytes} bytes can be here: ${path}`, {
      customerMessage: 'The storage host cannot hold a volume of this size.',
      retryable: false,
      cause: err,
    });
  } finally {
    await file.close();
  }
}

/** Whether this host has volumes or snapshots of a data directory, looked up without starting anything. */
export async function hasVolumes(dataDir: string): Promise<boolean> {
  const { volumes, snapshots } = layoutOf(dataDir);
  for (const folder of [volumes, snapshots]) if (existsSync(folder) && (await idsIn(folder)).length > 0) return true;
  return false;
}
