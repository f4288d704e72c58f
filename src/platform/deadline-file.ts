/**
 * Files with the time until when this host may serve something. Programs of the host, which end with it or give up an address,
 * compare them with /proc/uptime.
 *
 * Failure modes: on a full disk a file is overwritten in place, which needs no space. A reader may then see the first digits of
 * the old time with the last ones of the new: because all times have the same length, that is not later than the new time.
 */
import { closeSync, constants, mkdirSync, openSync, renameSync, writeFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

const length = 16;

/** `time`: a decimal number, in the unit of its reader. @throws if the file can be neither replaced nor overwritten */
export function writeDeadline(file: string, time: string): void {
  const text = `${time.padStart(length, '0')}\n`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(`${file}.new`, text);
    renameSync(`${file}.new`, file);
  } catch (error) {
    overwrite(file, text, error);
  }
}

/** @throws `cause` if the file does not exist */
function overwrite(file: string, text: string, cause: unknown): void {
  let descriptor: number;
  try {
    descriptor = openSync(file, constants.O_WRONLY);
  } catch {
    throw cause;
  }
  try {
    writeSync(descriptor, text, 0);
  } finally {
    closeSync(descriptor);
  }
}
