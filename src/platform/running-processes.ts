/** What pid files and /proc say about the processes of this host. */
import { accessSync, constants, readdirSync, readlinkSync, statSync } from 'node:fs';
import { readOrEmpty } from './read-or-empty.ts';

/** Null if the file is missing or has no number. */
export function readPidFile(pidFile: string): number | null {
  return Number.parseInt(readOrEmpty(pidFile), 10) || null;
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

function pidsOfHost(): number[] {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch {
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

function parentOf(pid: number): number {
  return Number(/^PPid:\t(\d+)$/m.exec(textOf(pid, 'status'))?.[1]);
}

function textOf(pid: number, file: string): string {
  return readOrEmpty(`/proc/${pid}/${file}`);
}
