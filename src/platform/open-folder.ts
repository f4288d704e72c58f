/**
 * Reaches files by a name in a folder that is open. Clients can neither replace a folder above by a symbolic link, nor make the
 * path too long for the system, and names are bytes: clients need not encode them in UTF-8.
 */
import { constants, type FileHandle, open, readdir } from 'node:fs/promises';

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;

/** A link at the path is not followed. */
export const openFolder = (path: string | Buffer): Promise<FileHandle> =>
  open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);

/** The path of a name in an open folder. A string has a character for each byte. */
export function inFolder({ fd }: FileHandle, name: Buffer | string): Buffer {
  return Buffer.concat([
    Buffer.from(`/proc/self/fd/${fd}/`),
    typeof name === 'string' ? Buffer.from(name, 'latin1') : name,
  ]);
}

/** The names in an open folder. */
export const namesIn = ({ fd }: FileHandle): Promise<Buffer[]> =>
  readdir(`/proc/self/fd/${fd}`, { encoding: 'buffer' });
