import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** Creates the data directory, unless it exists. @throws Error that names it and its setting */
export function createDataDirectory(dataDir: string): void {
  try {
    createFolder(dataDir);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const reasons: Record<string, string> = {
      EEXIST: 'a file is in its place',
      ENOTDIR: 'a file is in the place of a parent folder',
    };
    const reason = reasons[code!] ?? code;
    const advice = 'set CLOUDYARD_DATA_DIR to another one';
    throw new Error(`the data directory ${dataDir} cannot be created (${reason}); ${advice}`, { cause });
  }
}

/** `mkdirSync` with `recursive` never returns below a folder that exists and refuses new ones with ENOENT, such as /proc. */
function createFolder(folder: string): void {
  try {
    createOne(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    createFolder(dirname(folder));
    createOne(folder);
  }
}

/** Another process may create it, or the folders above it, at any time. */
function createOne(folder: string): void {
  try {
    mkdirSync(folder);
  } catch (error) {
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}
