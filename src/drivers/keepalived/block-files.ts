/**
 * The files in which keepalived reads which routers this host must not hold: a router is blocked while its file contains 1.
 * keepalived reads a file when it changes.
 */
import { closeSync, constants, existsSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from '../../platform/log.ts';
import { movingAddressError } from '../own-host.ts';

interface BlockFilesOptions {
  folder: string;
  /** Whether this host may hold each router, by name. */
  read(): Iterable<[router: string, mayHold: boolean]>;
  log: Logger;
}

const REPEAT_MS = 1000;

/** Writes nothing before `write` or `update`, and then only what differs. */
export function createBlockFiles({ folder, read, log }: BlockFilesOptions) {
  const written = new Map<string, string>();
  let repeated: NodeJS.Timeout | undefined;
  const pathOf = (router: string) => join(folder, `${router}.block`);

  /** Returns the failures. */
  const writeAll = (): Error[] => {
    const failures: Error[] = [];
    for (const [router, mayHold] of read()) {
      const text = mayHold ? '0\n' : '1\n';
      if (written.get(router) === text) continue;
      try {
        overwrite(pathOf(router), text);
        written.set(router, text);
      } catch (err) {
        written.delete(router);
        failures.push(err as Error);
      }
    }
    return failures;
  };
  const update = () => {
    clearTimeout(repeated);
    const [err] = writeAll();
    if (!err) return;
    log.error({ err }, 'cannot write the block files of routers; retrying');
    repeated = setTimeout(update, REPEAT_MS).unref();
  };
  return {
    pathOf,
    /** What an earlier process has written. */
    isUnblocked(router: string): boolean {
      const file = pathOf(router);
      return existsSync(file) && readFileSync(file, 'utf8').trim() === '0';
    },
    /** Brings all files up to date. @throws DriverError if one cannot be written */
    write(): void {
      const [failure] = writeAll();
      if (failure) throw movingAddressError(`the block file of a router cannot be written: ${failure.message}`);
    },
    /** The same; files that cannot be written are written later. */
    update,
  };
}

/** Keeps the size and, if the disk is full, the content: keepalived takes an empty file for a 0. */
function overwrite(file: string, text: string): void {
  const descriptor = openSync(file, constants.O_WRONLY | constants.O_CREAT, 0o600);
  try {
    writeSync(descriptor, text, 0);
  } finally {
    closeSync(descriptor);
  }
}
