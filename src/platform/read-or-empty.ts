import { readFileSync } from 'node:fs';

/** The text of a file; empty if it cannot be read. */
export function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** What this process or host lacks to read a file. */
const shortages = new Set(['EMFILE', 'ENFILE', 'ENOMEM']);

/** Call it with the error of a read of which a missing file is a result. @throws the error if the file may exist */
export function refuseShortage(error: unknown): void {
  if (shortages.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
}

/**
 * As `readOrEmpty`, where an empty text leads to a change: without descriptors, a running process would count as ended.
 * @throws without descriptors or memory
 */
export function readExisting(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    refuseShortage(error);
    return '';
  }
}
