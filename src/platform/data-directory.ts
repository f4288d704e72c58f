import { mkdirSync } from 'node:fs';

/** Creates the data directory, unless it exists. @throws Error that names it and its setting */
export function createDataDirectory(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true });
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
