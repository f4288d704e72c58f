/**
 * Copies the data of tenants on this host: images of shares, volumes and snapshots, and the storage of registries.
 *
 * Each file is consistent: an image of a share is copied while its filesystem is frozen, from a reflink where the filesystem
 * of the data directory has them, so that writes pause for milliseconds; otherwise they pause while it is copied. Nothing
 * writes into images of volumes. Links of registries are copied before the blobs that they refer to.
 *
 * Failure modes: the filesystem is frozen by a child that thaws it when its input ends, so also when this process is killed.
 */
import { once } from 'node:events';
import { constants } from 'node:fs';
import { copyFile, lstat, open, readdir, readlink, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { spawnChild } from '../platform/child-process.ts';
import type { BackupSink } from './block-store.ts';
import { BackupError, maxBlockBytes } from './format.ts';
import type { FileCopy } from './format.ts';

/** In this order. Everything else in the data directory is derived from rows, or temporary. */
const parts = [
  'file-shares/names.key',
  'file-shares/specs',
  'file-shares/images',
  // Shares that are plain folders. Mounted images are skipped.
  'file-shares/mounts',
  'volumes/images',
  'volumes/snapshots',
  'registries/storage/docker/registry/v2/repositories',
  'registries/storage/docker/registry/v2/blobs',
];
const images = /^file-shares\/images\/([^/]+)\.xfs$/;
const mounts = /^file-shares\/mounts\/([^/]+)$/;
/** In the data directory, because a reflink does not leave a filesystem; the sweeps scan other folders. */
const cloneName = '.backup-clone';
const zeros = Buffer.alloc(maxBlockBytes);

/** @throws BackupError for a file that cannot be read */
export async function copyFiles(dataDir: string, sink: BackupSink): Promise<FileCopy[]> {
  const copies: FileCopy[] = [];
  for (const part of parts) {
    const names = part.split('/');
    // The folders above, for their modes and owners.
    for (let i = 1; i < names.length; i++) {
      const above = names.slice(0, i).join('/');
      if (copies.some(({ path }) => path === above)) continue;
      const copy = await copyOne(dataDir, above, sink);
      if (copy) copies.push(copy);
    }
    for await (const copy of walk(dataDir, part, sink)) copies.push(copy);
  }
  return copies;
}

async function* walk(dataDir: string, path: string, sink: BackupSink): AsyncGenerator<FileCopy> {
  const copy = await copyOne(dataDir, path, sink);
  if (!copy) return;
  yield copy;
  if (copy.blocks || copy.link !== undefined) return;
  for (const name of (await readdir(join(dataDir, path))).sort()) yield* walk(dataDir, `${path}/${name}`, sink);
}

/** Null for a file that was removed meanwhile, and for sockets and the like. */
async function copyOne(dataDir: string, path: string, sink: BackupSink): Promise<FileCopy | null> {
  const full = join(dataDir, path);
  try {
    const stat = await lstat(full);
    const { uid, gid, mtimeMs } = stat;
    const copy: FileCopy = { path, mode: stat.mode & 0o7777, uid, gid, size: 0, mtimeMs };
    const folder = mounts.exec(path)?.[1];
    if (folder !== undefined && (await mountOf(dataDir, folder))) return null;
    if (stat.isSymbolicLink()) return { ...copy, link: await readlink(full) };
    if (stat.isDirectory()) return copy;
    if (!stat.isFile()) return null;
    const share = images.exec(path)?.[1];
    const mount = share === undefined ? null : await mountOf(dataDir, share);
    const contents = mount ? await copyFrozen(dataDir, full, mount, sink) : await copyBlocks(full, sink);
    return { ...copy, ...contents };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    if (error instanceof BackupError || code === undefined) throw error;
    throw new BackupError(`${full} cannot be read (${code})`, { cause: error });
  }
}

interface Contents {
  size: number;
  blocks: (string | null)[];
}

async function copyBlocks(file: string, sink: BackupSink): Promise<Contents> {
  const handle = await open(file, 'r');
  try {
    const blocks: (string | null)[] = [];
    let size = 0;
    const buffer = Buffer.alloc(maxBlockBytes);
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, maxBlockBytes, blocks.length * maxBlockBytes);
      if (bytesRead === 0) return { size, blocks };
      size += bytesRead;
      const block = buffer.subarray(0, bytesRead);
      blocks.push(block.equals(zeros.subarray(0, bytesRead)) ? null : await sink.putBlock(Buffer.from(block)));
    }
  } finally {
    await handle.close();
  }
}

async function copyFrozen(dataDir: string, file: string, mount: string, sink: BackupSink): Promise<Contents> {
  const clone = join(dataDir, cloneName);
  await rm(clone, { force: true });
  const thaw = await freeze(mount);
  try {
    const isCloned = await copyFile(file, clone, constants.COPYFILE_FICLONE_FORCE).then(
      () => true,
      () => false,
    );
    if (isCloned) await thaw();
    return await copyBlocks(isCloned ? clone : file, sink);
  } finally {
    await thaw();
    await rm(clone, { force: true });
  }
}

/** Null for a share that is not mounted, so that nothing writes into its image. */
async function mountOf(dataDir: string, share: string): Promise<string | null> {
  const mount = join(dataDir, 'file-shares', 'mounts', basename(share));
  const [own, above] = await Promise.all([lstat(mount), lstat(join(mount, '..'))]).catch(() => [null, null]);
  return own && above && own.dev !== above.dev ? mount : null;
}

/** Returns the function that thaws the filesystem. */
async function freeze(mount: string): Promise<() => Promise<void>> {
  const script = 'fsfreeze --freeze "$1" && echo frozen && { cat >/dev/null; fsfreeze --unfreeze "$1"; }';
  const child = spawnChild('sh', ['-c', script, 'sh', mount], { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  let errors = '';
  child.stderr!.on('data', (text: Buffer) => (errors += text.toString()));
  const closed = once(child, 'close');
  const [first] = await Promise.race([once(child.stdout!, 'data'), closed.then(() => [null])]);
  if (first === null) throw new BackupError(`${mount} cannot be frozen: ${errors.trim()}`);
  return async () => {
    child.stdin!.end();
    await closed;
  };
}
