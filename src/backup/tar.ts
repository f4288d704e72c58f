/** Writes and reads the part of the tar format (POSIX ustar) that backups use: files with short names. */
import type { Readable } from 'node:stream';
import { BackupError } from './format.ts';

const unit = 512;
/** More than a compressed block and than any manifest. */
const maxEntryBytes = 1024 * 1024 * 1024;

export const tarEnd = Buffer.alloc(2 * unit);

/** A file as it is in the archive: header, contents, padding. */
export function tarEntry(name: string, contents: Buffer): Buffer {
  const header = Buffer.alloc(unit);
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`;
  header.write(name, 0, 100, 'latin1');
  header.write(octal(0o600, 7) + octal(0, 7) + octal(0, 7) + octal(contents.length, 11) + octal(0, 11), 100, 'latin1');
  header.write(`        0`, 148, 'latin1');
  header.write('ustar\x0000', 257, 'latin1');
  header.write(`${octal(sumOf(header), 6)} `, 148, 'latin1');
  const padding = Buffer.alloc((unit - (contents.length % unit)) % unit);
  return Buffer.concat([header, contents, padding]);
}

/** Calls `onFile` for each file, in order. @throws BackupError for other input, or if the end is missing */
export async function readTar(
  input: Readable,
  onFile: (name: string, contents: Buffer) => Promise<void>,
): Promise<void> {
  const take = reader(input);
  for (;;) {
    const header = await take(unit);
    if (header.every((byte) => byte === 0)) break;
    const stated = Number.parseInt(header.toString('latin1', 148, 156), 8);
    const size = Number.parseInt(header.toString('latin1', 124, 136), 8);
    header.fill(' ', 148, 156);
    if (stated !== sumOf(header) || header.toString('latin1', 257, 262) !== 'ustar' || size > maxEntryBytes) {
      throw new BackupError('the input is damaged, or it is not a backup of Cloudyard');
    }
    const name = header.toString('latin1', 0, 100).replace(/\0.*$/s, '');
    await onFile(name, await take(size));
    await take((unit - (size % unit)) % unit);
  }
  // The rest belongs to the end. Reading it keeps the writer of a pipe from failing.
  for await (const _ of input.iterator({ destroyOnReturn: false })) continue;
}

function sumOf(header: Buffer): number {
  let sum = 0;
  for (const byte of header) sum += byte;
  return sum;
}

/** Returns a function that reads exactly this number of bytes. */
function reader(input: Readable): (bytes: number) => Promise<Buffer> {
  const chunks = input.iterator({ destroyOnReturn: false })[Symbol.asyncIterator]();
  let held: Buffer[] = [];
  let heldBytes = 0;
  return async (bytes) => {
    while (heldBytes < bytes) {
      const { value, done } = (await chunks.next()) as IteratorResult<Buffer>;
      if (done) throw new BackupError('the input was cut short: it ends before the end of the backup');
      held.push(value);
      heldBytes += value.length;
    }
    const all = Buffer.concat(held);
    held = [all.subarray(bytes)];
    heldBytes -= bytes;
    return Buffer.from(all.subarray(0, bytes));
  };
}
