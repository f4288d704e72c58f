/**
 * Stores of backups: a directory, or a tar archive that is written to a stream (format.ts).
 *
 * Failure modes: a write that fails (a full disk, a closed pipe) leaves blocks without a manifest, which the next `prune`
 * removes. Nothing that was complete before changes.
 */
import { lchown, mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress } from 'node:zlib';
import { createPause } from '../platform/event-loop.ts';
import {
  BackupError,
  blockPath,
  blocksOf,
  formatVersion,
  hashOf,
  isBackupId,
  type Manifest,
  requireFormat,
  storeFile,
} from './format.ts';
import { formatManifest, parseManifest } from './manifest.ts';
import { readTar, tarEnd, tarEntry } from './tar.ts';

const storeText = Buffer.from(`${JSON.stringify({ format: formatVersion })}\n`);
const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/** What a backup is written to. */
export interface BackupSink {
  /** Stores at most `maxBlockBytes` and returns their hash. */
  putBlock(plain: Buffer): Promise<string>;
  /** The backup is complete afterwards. */
  putManifest(manifest: Manifest): Promise<void>;
  /** Bytes written so far; blocks that were there already do not count. */
  written(): number;
}

/** What a backup is read from. */
export interface BackupSource {
  /** Ids, oldest first. */
  list(): Promise<string[]>;
  /** @throws BackupError if it is missing or damaged */
  manifest(id: string): Promise<Manifest>;
  /** @throws BackupError if it is missing or differs from its hash */
  block(hash: string): Promise<Buffer>;
}

export interface BackupDirectory extends BackupSink, BackupSource {
  remove(id: string): Promise<void>;
  /** Removes blocks that no backup refers to, and unfinished files. No backup may be running. */
  prune(): Promise<void>;
}

/** Opens or creates the store. @throws BackupError for a directory that has other contents */
export async function openBackupDirectory(folder: string): Promise<BackupDirectory> {
  await explained(folder, async () => {
    if (await mkdir(folder, { recursive: true, mode: 0o700 })) await inheritOwner(folder);
    const names = await readdir(folder);
    if (names.includes(storeFile)) return;
    // A process that was killed here left an unfinished file.
    const own = (name: string) => name === 'lost+found' || name === 'blocks' || name.startsWith(`${storeFile}.`);
    const others = names.filter((name) => !own(name));
    if (others.length > 0) {
      throw new BackupError(
        `${folder} is not empty and has no ${storeFile}; use an empty directory, or one that has backups of Cloudyard`,
      );
    }
    await writeDurably(join(folder, storeFile), storeText);
  });
  return directoryAt(folder);
}

/** @throws BackupError if the directory has no backups */
export async function readBackupDirectory(folder: string): Promise<BackupDirectory> {
  const text = await readFile(join(folder, storeFile), 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new BackupError(`${folder} has no backups: ${storeFile} cannot be read (${error.code})`);
  });
  const format = /^\{"format":(\d+)\}\n$/.exec(text)?.[1];
  if (format === undefined) throw new BackupError(`${join(folder, storeFile)} is damaged`);
  requireFormat(Number(format), folder);
  return directoryAt(folder);
}

function directoryAt(folder: string): BackupDirectory {
  let written = 0;
  const block = async (hash: string): Promise<Buffer> => {
    const name = blockPath(hash);
    const packed = await readFile(join(folder, name)).catch((error: NodeJS.ErrnoException) => {
      throw new BackupError(`block ${name} of the backup cannot be read (${error.code}); use another backup`);
    });
    const plain = await decompress(packed).catch(() => null);
    if (plain !== null && hashOf(plain) === hash) return plain;
    throw new BackupError(`block ${name} of the backup is damaged; use another backup`);
  };
  const list = async () => {
    const names = (await readdir(folder)).filter((name) => name.endsWith('.json')).map((name) => name.slice(0, -5));
    return names.filter(isBackupId).sort();
  };
  const manifest = async (id: string) => {
    const name = join(folder, `${id}.json`);
    const bytes = await readFile(name).catch((error: NodeJS.ErrnoException) => {
      const what = error.code === 'ENOENT' ? `not found in ${folder}` : `cannot be read from ${folder} (${error.code})`;
      throw new BackupError(`backup ${id} ${what}`);
    });
    const found = await parseManifest(bytes, name);
    if (found.id !== id) throw new BackupError(`the manifest ${name} is of backup ${found.id}; use another backup`);
    return found;
  };
  return {
    list,
    manifest,
    block,
    written: () => written,
    putBlock: (plain) =>
      explained(folder, async () => {
        const hash = hashOf(plain);
        // A block of an earlier backup is verified, because this backup depends on it, too.
        if (await block(hash).catch(() => null)) return hash;
        const path = join(folder, blockPath(hash));
        if (await mkdir(dirname(path), { recursive: true, mode: 0o700 })) {
          for (const made of [join(folder, 'blocks'), dirname(path)]) await inheritOwner(made);
        }
        const packed = await compress(plain);
        await writeDurably(path, packed);
        written += packed.length;
        return hash;
      }),
    putManifest: (made) =>
      explained(folder, async () => {
        // New folders of blocks, and the store itself: a power loss must not remove them after the manifest is durable.
        for (const parent of [join(folder, 'blocks'), dirname(folder)])
          await syncFolder(parent).catch(ignoreUnreadable);
        await writeDurably(join(folder, `${made.id}.json`), await formatManifest(made));
      }),
    remove: (id) => rm(join(folder, `${id}.json`)),
    async prune() {
      const used = new Set<string>();
      const pause = createPause();
      for (const id of await list()) {
        for (const hash of blocksOf(await manifest(id))) {
          used.add(hash);
          await pause();
        }
      }
      // Of a process that was killed while it wrote a manifest.
      for (const name of await readdir(folder)) if (name.endsWith('.tmp')) await rm(join(folder, name));
      const blocks = join(folder, 'blocks');
      for (const part of await readdir(blocks).catch(() => [])) {
        for (const name of await readdir(join(blocks, part))) {
          if (!used.has(name.slice(0, 64)) || !name.endsWith('.zst')) await rm(join(blocks, part, name));
        }
      }
    },
  };
}

/** A backup as a tar archive on a stream, in which each block occurs once. */
export function backupStream(output: Writable): BackupSink {
  const known = new Set<string>();
  let written = 0;
  // Errors also reject the writes. Without a listener the event would end the process before it has closed the database.
  output.on('error', () => {});
  const send = async (bytes: Buffer) => {
    written += bytes.length;
    await new Promise<void>((resolve, reject) => {
      output.write(bytes, (error) => (error ? reject(error) : resolve()));
    });
  };
  let begun: Promise<void> | undefined;
  const begin = () => (begun ??= send(tarEntry(storeFile, storeText)));
  return {
    written: () => written,
    async putBlock(plain) {
      await begin();
      const hash = hashOf(plain);
      if (!known.has(hash)) await send(tarEntry(blockPath(hash), await compress(plain)));
      known.add(hash);
      return hash;
    },
    async putManifest(manifest) {
      await begin();
      await send(tarEntry(`${manifest.id}.json`, Buffer.concat(await formatManifest(manifest))));
      await send(tarEnd);
    },
  };
}

/** Unpacks the stream of a backup into an empty directory. @throws BackupError if it is not a backup or was cut short */
export async function unpackBackup(input: Readable, folder: string): Promise<BackupDirectory> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await readTar(input, async (name, body) => {
    const id = name.replace(/\.json$/, '');
    if (name !== storeFile && !isBackupId(id) && !/^blocks\/[0-9a-f]{2}\/[0-9a-f]{64}\.zst$/.test(name)) {
      throw new BackupError(`the input has an entry ${JSON.stringify(name)}, which is not part of a backup`);
    }
    await explained(folder, async () => {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), body, { mode: 0o600 });
    });
  });
  const directory = await readBackupDirectory(folder);
  if ((await directory.list()).length === 0) throw new BackupError('the input was cut short: it has no manifest');
  return directory;
}

async function writeDurably(path: string, bytes: Buffer | Buffer[]): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    await writeNew(temporary, bytes);
    await rename(temporary, path);
    await syncFolder(dirname(path));
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {});
    throw error;
  }
}

/** Replaces what is at the path by a durable file of the owner of the folder. Links are not followed. */
export async function writeNew(path: string, bytes: Buffer | Buffer[]): Promise<void> {
  await rm(path, { force: true });
  await using file = await open(path, 'wx', 0o600);
  await file.writeFile(bytes);
  const owner = await ownerOfFolder(path);
  if (owner) await file.chown(owner.uid, owner.gid);
  await file.sync();
}

/**
 * Gives what root makes to the owner of its folder. The server of a package runs as an account of its own: it must be able to
 * read and continue backups that the administrator made in its data directory. Links are not followed.
 */
async function inheritOwner(path: string): Promise<void> {
  const owner = await ownerOfFolder(path);
  if (owner) await lchown(path, owner.uid, owner.gid);
}

/** Null: this account is not root, so what it makes belongs to itself. */
async function ownerOfFolder(path: string): Promise<{ uid: number; gid: number } | null> {
  return process.getuid?.() === 0 ? stat(dirname(path)) : null;
}

/** Makes new names in a folder survive a crash of the host. */
export async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r');
  await handle.sync();
}

/** No blocks yet, or a folder above the store that this account may not open, whose names another one has made durable. */
function ignoreUnreadable(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT' && error.code !== 'EACCES') throw error;
}

const reasons: Record<string, string> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is exceeded',
  EACCES: 'permission denied',
  EROFS: 'the filesystem is read-only',
  ENOTDIR: 'it is not a directory',
};

/** Runs `work`; system errors become a BackupError that names the folder. */
export async function explained<T>(folder: string, work: () => Promise<T>, done = 'written'): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (error instanceof BackupError || code === undefined) throw error;
    const isFile = code === 'EEXIST' && syscall === 'mkdir';
    const reason = reasons[isFile ? 'ENOTDIR' : code] ?? code;
    throw new BackupError(`the backup cannot be ${done} to ${folder}: ${reason}`, { cause: error });
  }
}
