/**
 * The paths of the driver. Only this module puts ids into paths, and it rejects ids that are not UUIDs, so that no id can
 * escape from the data directory or inject text into the configuration.
 */
import { existsSync } from 'node:fs';
import { mkdir, readdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { DriverError } from '../driver.ts';
import { syncPath } from '../durable-files.ts';

export interface Layout {
  root: string;
  specs: string;
  images: string;
  mounts: string;
  quarantine: string;
  ganesha: string;
  recovery: string;
  /** Files of the running Ganesha, on a ramfs (jail.ts). */
  runtime: string;
  /** Mount point of Ganesha's root directory, in its own namespace (jail.ts). */
  jail: string;
  spec(id: string): string;
  image(id: string): string;
  mount(id: string): string;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function layoutOf(dataDir: string): Layout {
  // The path is quoted in Ganesha's configuration, whose lexer does not support escapes.
  const root = join(resolve(dataDir), 'file-shares');
  if (!/^[\w./@+:, -]+$/.test(root)) {
    throw refusal(`the data directory ${root} has characters that NFS-Ganesha's configuration cannot hold`);
  }
  const folder = (name: string) => join(root, name);
  return {
    root,
    specs: folder('specs'),
    images: folder('images'),
    mounts: folder('mounts'),
    quarantine: folder('quarantine'),
    ganesha: folder('ganesha'),
    recovery: folder('ganesha/recovery'),
    runtime: folder('ganesha/runtime'),
    jail: folder('ganesha/root'),
    spec: (id) => folder(`specs/${checkedId(id)}.json`),
    image: (id) => folder(`images/${checkedId(id)}.xfs`),
    mount: (id) => folder(`mounts/${checkedId(id)}`),
  };
}

export async function makeFolders(layout: Layout): Promise<void> {
  // 0700: the roots of shares are world-writable, and users of this host must not reach them.
  await mkdir(layout.root, { recursive: true, mode: 0o700 });
  for (const folder of [layout.specs, layout.images, layout.mounts, layout.quarantine, layout.recovery]) {
    await mkdir(folder, { recursive: true });
  }
  // Otherwise a power loss removes a new folder with the synced files in it.
  for (const folder of [layout.root, dirname(layout.root)]) await syncPath(folder);
}

export function isId(text: string): boolean {
  return UUID.test(text);
}

function checkedId(id: string): string {
  if (!isId(id)) throw refusal(`not the id of a file share: ${JSON.stringify(id)}`);
  return id;
}

function refusal(message: string): DriverError {
  return new DriverError(message, { customerMessage: 'the storage host rejected the request', retryable: false });
}

/** The ids in a folder of `<id><ending>` files; ignores other files. */
export async function idsIn(folder: string, ending: string): Promise<string[]> {
  const names = await readdir(folder);
  return names
    .filter((name) => name.endsWith(ending))
    .map((name) => name.slice(0, name.length - ending.length))
    .filter(isId);
}

/** Whether a data directory contains file shares. Starts nothing. */
export async function hasFileShares(dataDir: string): Promise<boolean> {
  const { specs } = layoutOf(dataDir);
  return existsSync(specs) && (await idsIn(specs, '.json')).length > 0;
}
