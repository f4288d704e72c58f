/** The logs that the programs of drivers append to: reading what was appended, and truncating long ones. */
import { open, stat, truncate } from 'node:fs/promises';

const MAX_BYTES = 10 * 1024 * 1024;

/** Bytes; 0 if the file cannot be read. */
export async function logSize(file: string): Promise<number> {
  return (await stat(file).catch(() => null))?.size ?? 0;
}

/** Truncates a log of 10 MiB or more, which loses old lines only: its program appends. Returns the size afterwards. */
export async function truncateLong(file: string): Promise<number> {
  const size = await logSize(file);
  if (size < MAX_BYTES) return size;
  await truncate(file);
  return 0;
}

/** The text after an offset in bytes. @throws the error of the system call */
export async function readFrom(file: string, offset: number): Promise<string> {
  await using log = await open(file, 'r');
  const { size } = await log.stat();
  const buffer = Buffer.alloc(Math.max(0, size - offset));
  const { bytesRead } = await log.read(buffer, 0, buffer.length, offset);
  return buffer.toString('utf8', 0, bytesRead);
}
