/**
 * Which process works with a data directory. A process that is frozen loses its locks in the database when that restarts, and
 * then continues with what it was doing: it would replace files that the next one has written, such as the image of a share.
 * So the next one waits until it has ended.
 *
 * Failure modes: if the file cannot be written (a full disk), and between containers, only the locks in the database count.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { descriptorsOf, liveProcess } from '../platform/running-processes.ts';
import type { Logger } from '../platform/log.ts';
import { readExisting, readOrEmpty } from '../platform/read-or-empty.ts';

const fileOf = (dataDir: string) => join(dataDir, 'worker.pid');
/** The start time identifies the process, and a copy of the data directory has another path. */
const textOf = (pid: number, dataDir: string) => `${pid} ${liveProcess(pid)?.startTime ?? 'ended'} ${dataDir}\n`;

/** The pid of another live process that works with the data directory; null if there is none. */
export function findOtherOwner(dataDir: string): number | null {
  const text = readExisting(fileOf(dataDir));
  const pid = Number.parseInt(text, 10);
  return pid !== process.pid && text === textOf(pid, dataDir) ? pid : null;
}

/** The data directory that a worker of this host works with and that this daemon logs to; null if there is none. */
export function findWorkedDirectory(daemon: number): string | null {
  for (const target of descriptorsOf(daemon)) {
    if (!target.startsWith('/')) continue;
    for (let folder = dirname(target); folder !== '/'; folder = dirname(folder)) {
      if (findOtherOwner(folder) !== null) return folder;
    }
  }
  return null;
}

/**
 * Records that this process works with the data directory. Replaces the file: in the data directory of another account, root
 * would write through a link.
 */
export function recordOwner(dataDir: string, log: Logger): void {
  try {
    rmSync(fileOf(dataDir), { force: true });
    writeFileSync(fileOf(dataDir), textOf(process.pid, dataDir), { flag: 'wx', mode: 0o600 });
  } catch (error) {
    log.warn({ err: error }, 'cannot record the process that works with the data directory');
  }
}

/** Call it when this process has ended its work. */
export function removeOwner(dataDir: string): void {
  if (Number.parseInt(readOrEmpty(fileOf(dataDir)), 10) === process.pid) rmSync(fileOf(dataDir), { force: true });
}
