/**
 * Workers of an nginx whose master was killed: they keep the ports that the next nginx needs. Their command line names no
 * folder, so they are identified by our log, which they hold open.
 */
import { descriptorsOf, liveProcess, parentOf, pidsOfHost } from '../../platform/running-processes.ts';
import { endProcess } from '../end-process.ts';

const TERMINATION_MS = 2_000;

/** The pids of workers without a master that write to this log. */
export function orphansOf(log: string): number[] {
  return pidsOfHost().filter((pid) => isWorker(pid) && !hasMaster(pid) && holds(pid, log));
}

/** Ends these workers: SIGTERM, and SIGKILL after 2 s. Returns their pids. */
export async function endOrphans(log: string): Promise<number[]> {
  const orphans = orphansOf(log)
    .map(liveProcess)
    .filter((found) => found !== null);
  await Promise.all(orphans.map((found) => endProcess(found, TERMINATION_MS)));
  return orphans.map(({ pid }) => pid);
}

function isWorker(pid: number): boolean {
  return liveProcess(pid)?.commandLine.startsWith('nginx: worker process') ?? false;
}

/** The parent of a worker is its master until the master dies. True if it cannot be read. */
function hasMaster(pid: number): boolean {
  const parent = parentOf(pid);
  return Number.isNaN(parent) || (liveProcess(parent)?.commandLine.startsWith('nginx: master process') ?? false);
}

function holds(pid: number, file: string): boolean {
  return descriptorsOf(pid).some((target) => target.replace(/ \(deleted\)$/, '') === file);
}
