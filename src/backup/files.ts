/**
 * Copies the data of tenants on this host: images of shares, volumes and snapshots, and the storage of registries.
 *
 * Each file is consistent: an image of a share is copied while its filesystem is frozen, from a reflink where the filesystem
 * of the data directory has them, so that writes pause for milliseconds; otherwise they pause while it is copied. Nothing
 * writes into images of volumes. Links of registries are copied before the blobs that they refer to.
 *
 * Invariant: only files below the data directory are read. Clients may replace a file or a folder of a share by a symbolic link
 * at any time, so each name is opened in its open folder (open-folder.ts), and links are not followed.
 */
import { constants, existsSync } from 'node:fs';
import { copyFile, type FileHandle, lstat, open, readlink, rm, stat } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { freeze } from '../platform/filesystem-freeze.ts';
import { inFolder, namesIn, openFolder } from '../platform/open-folder.ts';
import { succeeds } from '../platform/succeeds.ts';
import type { BackupSink } from './block-store.ts';
import { BackupError, type FileCopy, maxBlockBytes, namesOf } from './format.ts';

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
/** Each folder above a file takes a descriptor while it is copied. */
const maxFolders = 500;
const zeros = Buffer.alloc(maxBlockBytes);

/** Whether a worker keeps data of tenants in this data directory. That of an API server has none. */
export function hasFiles(dataDir: string): boolean {
  return parts.some((part) => existsSync(join(dataDir, part)));
}

interface Source {
  dataDir: string;
  sink: BackupSink;
  /** In the order of the backup. */
  copies: FileCopy[];
  onOmitted: (path: string) => void;
}

interface Entry {
  /** Relative to the data directory, a character for each byte. */
  path: string;
  /** Where it can be opened: a name in an open folder. */
  at: Buffer;
  /** The number of folders above it in its part. */
  depth: number;
}

/**
 * Calls `onOmitted` with each folder whose contents are not copied, because it is too deep.
 * @throws BackupError for a file that cannot be read
 */
export async function copyFiles(
  dataDir: string,
  sink: BackupSink,
  onOmitted: (path: string) => void,
): Promise<FileCopy[]> {
  const source: Source = { dataDir, sink, copies: [], onOmitted };
  const known = new Set<string>();
  for (const part of parts) {
    const names = part.split('/');
    // The folders above, for their modes and owners.
    for (let i = 1; i <= names.length; i++) {
      const path = names.slice(0, i).join('/');
      const isPart = i === names.length;
      if (known.has(path)) continue;
      known.add(path);
      await explained(source, path, () => copyOwnPath(source, path, isPart));
    }
  }
  return source.copies;
}

/** A path that only the operator can replace, such as by a link to another disk. `isPart`: with its contents. */
async function copyOwnPath(source: Source, path: string, isPart: boolean): Promise<void> {
  const full = join(source.dataDir, path);
  if (!(await lstat(full).catch(() => null))) return;
  // Fails for a link to a disk that is not mounted.
  if (!(await stat(full)).isDirectory()) return copyEntry(source, { path, at: Buffer.from(full), depth: 0 });
  await using folder = await open(full, constants.O_RDONLY | constants.O_DIRECTORY);
  await addFolder(source, folder, path);
  if (isPart) await copyContents(source, folder, { path, depth: 0 });
}

async function addFolder({ copies }: Source, folder: FileHandle, path: string): Promise<void> {
  const { mode, uid, gid, mtimeMs } = await folder.stat();
  copies.push({ ...namesOf(path), mode: mode & 0o7777, uid, gid, size: 0, mtimeMs });
}

async function copyContents(
  source: Source,
  folder: FileHandle,
  { path, depth }: Pick<Entry, 'path' | 'depth'>,
): Promise<void> {
  if (depth === maxFolders) return source.onOmitted(textOf(source, path));
  for (const name of (await namesIn(folder)).sort(Buffer.compare)) {
    const entry = { path: `${path}/${name.toString('latin1')}`, at: inFolder(folder, name), depth: depth + 1 };
    await explained(source, entry.path, () => copyEntry(source, entry));
  }
}

/** Copies nothing of a file that was removed or replaced meanwhile, and of sockets, pipes and devices. */
async function copyEntry(source: Source, entry: Entry): Promise<void> {
  const { path, at } = entry;
  const { dataDir, copies } = source;
  const found = await lstat(at);
  if (found.isDirectory()) {
    const folder = mounts.exec(path)?.[1];
    if (folder !== undefined && (await mountOf(dataDir, folder))) return;
    await using handle = await openFolder(at);
    await addFolder(source, handle, path);
    await copyContents(source, handle, entry);
    return;
  }
  const { uid, gid, mtimeMs } = found;
  const attributes = { mode: found.mode & 0o7777, uid, gid, mtimeMs };
  if (found.isSymbolicLink()) {
    const link = await readlink(at, { encoding: 'latin1' });
    copies.push({ ...namesOf(path, link), ...attributes, size: 0 });
  } else if (found.isFile()) {
    const share = images.exec(path)?.[1];
    const mount = share === undefined ? null : await mountOf(dataDir, share);
    const contents = mount ? await copyFrozen(source, at, mount) : await copyBlocks(at, source.sink);
    if (contents) copies.push({ ...namesOf(path), ...attributes, ...contents });
  }
}

/** Errors of a file that was removed or replaced meanwhile. */
const replaced = new Set<string | undefined>(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO', 'EINVAL']);

/** @throws BackupError for a system error other than that the file was removed or replaced */
async function explained(source: Source, path: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (error instanceof BackupError || code === undefined) throw error;
    const isOwn = parts.some((part) => part === path || part.startsWith(`${path}/`));
    if (replaced.has(code) && !isOwn) return;
    throw new BackupError(`${textOf(source, path)} cannot be read (${code})`, { cause: error });
  }
}

/** The path for messages. */
function textOf({ dataDir }: Source, path: string): string {
  const bytes = Buffer.from(path, 'latin1');
  const text = bytes.toString('utf8');
  const shown = text.length > 300 ? `${text.slice(0, 300)}…` : text;
  // Clients choose the names.
  return join(dataDir, shown).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\ufffd');
}

interface Contents {
  size: number;
  blocks: (string | null)[];
}

/** Null if it is not a file any more. */
async function copyBlocks(at: Buffer | string, sink: BackupSink): Promise<Contents | null> {
  // Without O_NONBLOCK, opening a pipe waits for its writer.
  await using handle = await open(at, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  if (!(await handle.stat()).isFile()) return null;
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

async function copyFrozen({ dataDir, sink }: Source, at: Buffer, mount: string): Promise<Contents | null> {
  const clone = join(dataDir, cloneName);
  await rm(clone, { force: true });
  const folder = join(dataDir, 'file-shares');
  const thaw = await freeze(folder, relative(folder, mount)).catch((error: Error) => {
    throw new BackupError(error.message, { cause: error });
  });
  try {
    const isCloned = await succeeds(copyFile(at, clone, constants.COPYFILE_FICLONE_FORCE));
    if (isCloned) await thaw();
    return await copyBlocks(isCloned ? clone : at, sink);
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
