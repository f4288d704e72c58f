/**
 * Copies the data of tenants on this host: images of shares, volumes and snapshots, and the storage of registries.
 *
 * Each file is consistent: an image of a share is copied while its filesystem is frozen, from a reflink where the filesystem
 * of the data directory has them, so that writes pause for milliseconds; otherwise they pause while it is copied. Nothing
 * writes into images of volumes. Links of registries are copied before the blobs that they refer to.
 *
 * Invariant: only files below the data directory are read. Clients may replace a file or a folder of a share by a symbolic link
 * at any time, so the path of each file is verified after it was opened.
 */
import { constants, existsSync } from 'node:fs';
import { copyFile, type FileHandle, lstat, open, readdir, readlink, realpath, rm } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { freeze } from '../platform/filesystem-freeze.ts';
import { succeeds } from '../platform/succeeds.ts';
import type { BackupSink } from './block-store.ts';
import { BackupError, type FileCopy, maxBlockBytes } from './format.ts';

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

/** Whether a worker keeps data of tenants in this data directory. That of an API server has none. */
export function hasFiles(dataDir: string): boolean {
  return parts.some((part) => existsSync(join(dataDir, part)));
}

/** @throws BackupError for a file that cannot be read */
export async function copyFiles(dataDir: string, sink: BackupSink): Promise<FileCopy[]> {
  const copies: FileCopy[] = [];
  for (const part of parts) {
    const names = part.split('/');
    // The folders above, for their modes and owners.
    for (let i = 1; i < names.length; i++) {
      const above = names.slice(0, i).join('/');
      if (copies.some(({ path }) => path === above)) continue;
      const copy = await copyOne({ dataDir, path: above, place: await placeOf(dataDir, above) }, sink);
      if (copy) copies.push(copy);
    }
    const place = await placeOf(dataDir, part);
    for await (const copy of walk({ dataDir, path: part, place }, sink)) copies.push(copy);
  }
  return copies;
}

interface Entry {
  dataDir: string;
  /** Relative to the data directory. */
  path: string;
  /** Its absolute path without symbolic links, unless a client replaced a folder above it. */
  place: string;
}

/** Only for paths that clients cannot replace. */
function placeOf(dataDir: string, path: string): Promise<string> {
  const full = join(dataDir, path);
  return realpath(full).catch(() => full);
}

async function* walk({ dataDir, path, place }: Entry, sink: BackupSink): AsyncGenerator<FileCopy> {
  const copy = await copyOne({ dataDir, path, place }, sink);
  if (!copy) return;
  yield copy;
  if (copy.blocks || copy.link !== undefined) return;
  for (const name of (await namesIn(join(dataDir, path))).sort()) {
    yield* walk({ dataDir, path: `${path}/${name}`, place: `${place}/${name}` }, sink);
  }
}

/** None in a folder that was removed meanwhile, such as that of an upload to a registry, or replaced by a file. */
async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw new BackupError(`${folder} cannot be read (${error.code})`, { cause: error });
  });
}

/** Errors of a file that was removed or replaced meanwhile. */
const replaced = new Set<string | undefined>(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO', 'EINVAL']);

/** Null for a file that was removed or replaced meanwhile, and for sockets, pipes and devices. */
async function copyOne({ dataDir, path, place }: Entry, sink: BackupSink): Promise<FileCopy | null> {
  const full = join(dataDir, path);
  try {
    const stat = await lstat(full);
    const { uid, gid, mtimeMs } = stat;
    const copy: FileCopy = { path, mode: stat.mode & 0o7777, uid, gid, size: 0, mtimeMs };
    const folder = mounts.exec(path)?.[1];
    if (folder !== undefined && (await mountOf(dataDir, folder))) return null;
    if (stat.isSymbolicLink()) return { ...copy, link: await readlink(full) };
    if (stat.isDirectory()) return (await realpath(full)) === place ? copy : null;
    if (!stat.isFile()) return null;
    const share = images.exec(path)?.[1];
    const mount = share === undefined ? null : await mountOf(dataDir, share);
    const contents = mount
      ? await copyFrozen({ dataDir, path, place }, mount, sink)
      : await copyBlocks(full, place, sink);
    return contents && { ...copy, ...contents };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (replaced.has(code)) return null;
    if (error instanceof BackupError || code === undefined) throw error;
    throw new BackupError(`${full} cannot be read (${code})`, { cause: error });
  }
}

interface Contents {
  size: number;
  blocks: (string | null)[];
}

/** Null if the file is not at its place. */
async function copyBlocks(file: string, place: string, sink: BackupSink): Promise<Contents | null> {
  // Without O_NONBLOCK, opening a pipe waits for its writer.
  await using handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  if (!(await isAt(handle, place))) return null;
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
}

async function isAt(handle: FileHandle, place: string): Promise<boolean> {
  return (await readlink(`/proc/self/fd/${handle.fd}`)) === place && (await handle.stat()).isFile();
}

async function copyFrozen({ dataDir, path, place }: Entry, mount: string, sink: BackupSink): Promise<Contents | null> {
  const file = join(dataDir, path);
  const clone = join(dataDir, cloneName);
  await rm(clone, { force: true });
  const folder = join(dataDir, 'file-shares');
  const thaw = await freeze(folder, relative(folder, mount)).catch((error: Error) => {
    throw new BackupError(error.message, { cause: error });
  });
  try {
    const isCloned = await succeeds(copyFile(file, clone, constants.COPYFILE_FICLONE_FORCE));
    if (isCloned) await thaw();
    return isCloned ? await copyBlocks(clone, await realpath(clone), sink) : await copyBlocks(file, place, sink);
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
