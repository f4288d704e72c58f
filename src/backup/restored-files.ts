/**
 * Writes the files of a backup. Their paths may be longer than the system accepts and have any bytes, so each is opened in its open
 * folder (open-folder.ts).
 */
import { type FileHandle, lchown, mkdir, open, symlink } from 'node:fs/promises';
import { inFolder, openFolder } from '../platform/open-folder.ts';
import type { BackupSource } from './block-store.ts';
import { type FileCopy, maxBlockBytes, pathBytesOf } from './format.ts';

/** @throws BackupError for a block that is missing or damaged */
export async function writeFiles(folder: string, files: FileCopy[], source: BackupSource): Promise<void> {
  await using folders = await openFolders(folder);
  for (const file of files) await writeCopy(folders, file, source);
  // Directories last, because writing into one changes its time.
  for (const file of [...files].reverse()) {
    if (!file.blocks && file.link === undefined) await setAttributes(await folders.open(pathBytesOf(file)), file);
  }
}

interface OpenFolders extends AsyncDisposable {
  /** The folder at the path, which has a character for each byte. Folders that do not exist are created. */
  open(path: string): Promise<FileHandle>;
}

/** Keeps the folder that was opened last, and those above it. */
async function openFolders(root: string): Promise<OpenFolders> {
  const handles = [await openFolder(root)];
  const names: string[] = [];
  const closeTo = async (depth: number) => {
    names.length = depth;
    while (handles.length > depth + 1) await handles.pop()!.close();
  };
  return {
    async open(path) {
      const wanted = path === '' ? [] : path.split('/');
      const common = wanted.findIndex((name, at) => names[at] !== name);
      await closeTo(common === -1 ? wanted.length : common);
      for (const name of wanted.slice(names.length)) {
        const at = inFolder(handles.at(-1)!, name);
        await mkdir(at).catch((error: NodeJS.ErrnoException) => {
          if (error.code !== 'EEXIST') throw error;
        });
        handles.push(await openFolder(at));
        names.push(name);
      }
      return handles.at(-1)!;
    },
    async [Symbol.asyncDispose]() {
      await closeTo(0);
      await handles[0]!.close();
    },
  };
}

async function writeCopy(folders: OpenFolders, file: FileCopy, source: BackupSource): Promise<void> {
  const path = pathBytesOf(file);
  const { link, blocks, size, encoding } = file;
  if (link === undefined && !blocks) return void (await folders.open(path));
  const end = path.lastIndexOf('/');
  const at = inFolder(await folders.open(path.slice(0, Math.max(0, end))), path.slice(end + 1));
  if (link !== undefined) {
    await symlink(Buffer.from(link, encoding ?? 'utf8'), at);
    return isRoot() ? lchown(at, file.uid, file.gid) : undefined;
  }
  await using handle = await open(at, 'wx', 0o600);
  for (const [i, hash] of blocks!.entries()) {
    if (hash !== null) await writeAt(handle, await source.block(hash), i * maxBlockBytes);
  }
  await handle.truncate(size);
  await setAttributes(handle, file);
  await handle.sync();
}

/** One write of a nearly full disk may write a part only. */
async function writeAt(handle: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    done += (await handle.write(bytes, done, undefined, position + done)).bytesWritten;
  }
}

async function setAttributes(handle: FileHandle, { mode, uid, gid, mtimeMs }: FileCopy): Promise<void> {
  if (isRoot()) await handle.chown(uid, gid);
  await handle.chmod(mode);
  await handle.utimes(mtimeMs / 1000, mtimeMs / 1000);
}

const isRoot = () => process.getuid?.() === 0;
