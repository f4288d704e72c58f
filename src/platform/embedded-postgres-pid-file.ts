/** Reads `postmaster.pid` of a cluster and checks it against /proc, because the file survives a crash. */
import { join } from 'node:path';
import { processIn } from './running-processes.ts';
import { readOrEmpty } from './read-or-empty.ts';

/** True for the postmaster of this cluster; its children have the title `postgres: …`. */
export function isPostmaster(commandLine: string, pgData: string): boolean {
  return commandLine.includes(`postgres -D ${pgData} `);
}

/** The pid of the live server, or null. */
export function livePostmaster(pgData: string): number | null {
  const found = processIn(join(pgData, 'postmaster.pid'));
  return found && isPostmaster(found.commandLine, pgData) ? found.pid : null;
}

/** A running server may use another socket directory than a new one would (another TMPDIR). The fifth line names it. */
export function socketDirOfRunning(pgData: string): string | null {
  if (livePostmaster(pgData) === null) return null;
  return lineOf(join(pgData, 'postmaster.pid'), 4) || null;
}

/** Whether the server is shutting down. The eighth line is its state. */
export function isStopping(pgData: string): boolean {
  return lineOf(join(pgData, 'postmaster.pid'), 7).trim() === 'stopping';
}

function lineOf(file: string, index: number): string {
  return readOrEmpty(file).split('\n')[index] ?? '';
}
