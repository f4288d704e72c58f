/**
 * What pid files and /proc say about the processes of this host.
 *
 * Failure modes: without descriptors or memory, nothing can be read. Then these functions throw, and `isRunning` returns true,
 * because a process that counts as ended is started again.
 */
import { accessSync, constants, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { readExisting, refuseShortage } from './read-or-empty.ts';

export interface LiveProcess {
  pid: number;
  /** Clock ticks since boot; distinguishes a reused pid from the same process. */
  startTime: string;
  commandLine: string;
}

/** Null if the file is missing or has no number. */
export function readPidFile(pidFile: string): number | null {
  return Number.parseInt(readExisting(pidFile), 10) || null;
}

/** Null for a dead process, a zombie, or an invalid pid. */
export function liveProcess(pid: number): LiveProcess | null {
  if (!Number.isSafeInteger(pid) || pid <= 0) return null;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field, the name in parentheses, may itself contain spaces and parentheses.
    const fromState = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fromState[0] === 'Z' || fromState[0] === 'X') return null;
    const commandLine = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    return { pid, startTime: fromState[19] ?? '', commandLine };
  } catch (error) {
    refuseShortage(error);
    return null;
  }
}

/** The live process that a pid file names, or null. */
export function processIn(pidFile: string): LiveProcess | null {
  const pid = readPidFile(pidFile);
  return pid === null ? null : liveProcess(pid);
}

/** Whether this process, and not another one with its pid, still runs. */
export function isRunning({ pid, startTime }: LiveProcess): boolean {
  try {
    return liveProcess(pid)?.startTime === startTime;
  } catch {
    return true;
  }
}

/**
 * The path of what a process writes to its standard error: another program may have removed or replaced the file `log` that
 * it was started with. It is `log` where /proc does not show it, as in a container without CAP_SYS_PTRACE.
 */
export function standardErrorOf(pid: number, log: string): string {
  const path = `/proc/${pid}/fd/2`;
  try {
    accessSync(path, constants.R_OK);
    return path;
  } catch {
    return log;
  }
}

/** Whether a process was started with this variable; false if its environment cannot be read. */
export function startedWith(pid: number, name: string, value: string): boolean {
  return textOf(pid, 'environ').split('\0').includes(`${name}=${value}`);
}

/**
 * Returns the pid of a process that `matches`, or null. Other accounts can name their processes as they like, so only those of
 * `uids` count; and a container may use the same paths, so only those that see the same processes and files do. Of a process and
 * its children that match, it is the parent.
 */
export function findByCommandLine(
  matches: (commandLine: string, pid: number) => boolean,
  uids: readonly number[],
): number | null {
  const commandLine = (pid: number) => textOf(pid, 'cmdline').replaceAll('\0', ' ').trim();
  const found = pidsOfHost().filter((pid) => isCandidate(pid, uids) && matches(commandLine(pid), pid));
  return found.find((pid) => !found.includes(parentOf(pid))) ?? null;
}

/** The pids of all processes. */
export function pidsOfHost(): number[] {
  return namesIn('/proc').map(Number).filter(Number.isInteger);
}

/** The targets of the open files of a process; empty if they cannot be read. */
export function descriptorsOf(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  return namesIn(folder).flatMap((name) => {
    try {
      return readlinkSync(`${folder}/${name}`);
    } catch {
      return [];
    }
  });
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    refuseShortage(error);
    return [];
  }
}

function isCandidate(pid: number, uids: readonly number[]): boolean {
  try {
    const namespace = (of: string, kind: string) => readlinkSync(`/proc/${of}/ns/${kind}`);
    const isNear = (kind: string) => namespace(String(pid), kind) === namespace('self', kind);
    return pid !== process.pid && uids.includes(statSync(`/proc/${pid}`).uid) && isNear('pid') && isNear('mnt');
  } catch {
    // It has ended, or belongs to another account.
    return false;
  }
}

/** NaN if the process has ended. */
export function parentOf(pid: number): number {
  return Number(/^PPid:\t(\d+)$/m.exec(textOf(pid, 'status'))?.[1]);
}

function textOf(pid: number, file: string): string {
  return readExisting(`/proc/${pid}/${file}`);
}
