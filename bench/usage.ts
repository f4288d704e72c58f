/** CPU time and memory of processes, from /proc. CPU time depends less on other load than a rate does. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { pidsOfHost } from '../src/platform/running-processes.ts';
import type { Cloudyard } from './cloudyard.ts';

/** The CPU time of a process, in ms. */
interface Times {
  /** The pid of its parent process. */
  parent: number;
  own: number;
  ofEndedChildren: number;
}

const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

/** Unit: ms. */
interface CpuTime {
  node: number;
  postgres: number;
  /** Of the programs that this process has started and that have ended. */
  generators: number;
}

/** Returns a function that returns the times so far. `pid`: the server's only process. */
export async function cpuTimeOf({ pid, database }: Cloudyard): Promise<() => CpuTime> {
  const client = new pg.Client(database);
  await client.connect();
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  const postmaster = timesOf(rows[0]!.pid)!.parent;
  await client.end();
  return () => {
    const children = pidsOfHost()
      .map(timesOf)
      .filter((times) => times?.parent === postmaster);
    const own = timesOf(postmaster)!;
    return {
      node: timesOf(pid)!.own,
      postgres: children.reduce((sum, times) => sum + times!.own, own.own + own.ofEndedChildren),
      generators: timesOf(process.pid)!.ofEndedChildren,
    };
  };
}

/** User and system time of a process; null if it has ended. */
export function timesOf(pid: number): Times | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const ms = (at: number) => ((fields[at]! + fields[at + 1]!) * 1000) / ticksPerSecond;
    return { parent: fields[1]!, own: ms(11), ofEndedChildren: ms(13) };
  } catch {
    return null;
  }
}

/** Resident memory of a process. */
export function residentMegabytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;
}
