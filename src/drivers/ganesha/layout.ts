/**
 * Where everything of the driver lies. The only place that puts an id into a path, and so the place that refuses one
 * that is not a UUID: nothing else can climb out of the data directory or into the configuration's text.
 *
 * What is written must survive a crash of the host: files are written under another name, synced, renamed, and the
 * folder is synced.
 */
import { existsSync } from 'node:fs';
import { mkdir, readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { DriverError } from '../driver.ts';

export interface Layout {
  root: string;
  specs: string;
  images: string;
  mounts: string;
  quarantine: string;
  ganesha: string;
  recovery: string;
  /** What Ganesha reads and writes while it runs, on a ramfs (jail.ts). */
  runtime: string;
  /** Where Ganesha's root directory is built, in a namespace of its own (jail.ts). */
  jail: string;
  spec(id: string): string;
  image(id: string): string;
  mount(id: string): string;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function layoutOf(dataDir: string): Layout {
  // Written into Ganesha's configuration within double quotes, where its lexer knows no escape.
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
  // 0700: the roots of the shares are world-writable, and are for clients, not for users of this host.
  await mkdir(layout.root, { recursive: true, mode: 0o700 });
  for (const folder of [layout.specs, layout.images, layout.mounts, layout.quarantine, layout.recovery]) {
    await mkdir(folder, { recursive: true });
  }
}

export function isId(text: string): boolean {
  return UUID.test(text);
}

function checkedId(id: string): string {
  if (!isId(id)) throw refusal(`not the id of a file share: ${JSON.stringify(id)}`);
  return id;
}

function refusal(message: string): DriverError {
  return new DriverError(message, { customerMessage: 'The storage host refused this.', retryable: false });
}

/** The ids in a folder of `<id><ending>` files; anything else in it is left out. */
export async function idsIn(folder: string, ending: string): Promise<string[]> {
  const names = await readdir(folder);
  return names
    .filter((name) => name.endsWith(ending))
    .map((name) => name.slice(0, name.length - ending.length))
    .filter(isId);
}

/** Whether this host has file shares of a data directory, looked up without starting anything. */
export async function hasFileShares(dataDir: string): Promise<boolean> {
  const { specs } = layoutOf(dataDir);
  return existsSync(specs) && (await idsIn(specs, '.json')).length > 0;
}
