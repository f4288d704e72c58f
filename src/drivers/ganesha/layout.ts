/**
 * The paths of the driver. Only this module puts ids into paths, and it rejects ids that are not UUIDs, so that no id can
 * escape from the data directory or inject text into the configuration.
 */
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { DriverError } from '../driver.ts';
import { syncNewFolders } from '../durable-files.ts';
import { checkedId, hasIds } from '../id-files.ts';

export type Layout = ReturnType<typeof layoutOf>;

const shareId = (id: string) => checkedId(id, 'a file share');

/** @throws DriverError, permanent, for a data directory that Ganesha's configuration cannot hold */
export function layoutOf(dataDir: string) {
  // The path is quoted in Ganesha's configuration, whose lexer does not support escapes.
  const root = join(resolve(dataDir), 'file-shares');
  if (!/^[\w./@+:, -]+$/.test(root)) {
    const message = `the data directory ${root} has characters that NFS-Ganesha's configuration cannot hold`;
    throw new DriverError(message, { customerMessage: 'the storage host rejected the request', retryable: false });
  }
  const folder = (name: string) => join(root, name);
  return {
    root,
    specs: folder('specs'),
    images: folder('images'),
    mounts: folder('mounts'),
    quarantine: folder('quarantine'),
    ganesha: folder('ganesha'),
    logFile: folder('ganesha/ganesha.log'),
    /** Of a Ganesha without a jail (server.ts). */
    pidFile: folder('ganesha/ganesha.pid'),
    /** The modes of the root of a new filesystem, for mkfs.xfs. */
    protofile: folder('mkfs.proto'),
    recovery: folder('ganesha/recovery'),
    /** Files of the running Ganesha, on a ramfs (jail.ts). */
    runtime: folder('ganesha/runtime'),
    /** Mount point of Ganesha's root directory, in its own namespace (jail.ts). */
    jail: folder('ganesha/root'),
    spec: (id: string) => folder(`specs/${shareId(id)}.json`),
    image: (id: string) => folder(`images/${shareId(id)}.xfs`),
    mount: (id: string) => folder(`mounts/${shareId(id)}`),
  };
}

/** Creates the folders, durably. */
export async function makeFolders(layout: Layout): Promise<void> {
  // 0700: the roots of shares are world-writable, and users of this host must not reach them.
  await mkdir(layout.root, { recursive: true, mode: 0o700 });
  for (const folder of [layout.specs, layout.images, layout.mounts, layout.quarantine, layout.recovery]) {
    await mkdir(folder, { recursive: true });
  }
  await syncNewFolders(layout.root);
}

/** Whether a data directory contains file shares. Starts nothing. */
export function hasFileShares(dataDir: string): Promise<boolean> {
  return hasIds(layoutOf(dataDir).specs, '.json');
}
