/** CPU time of a server, its PostgreSQL and the load generator, from /proc. It depends less on other load than a rate does. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import pg from 'pg';
import type { Cloudyard } from './cloudyard.ts';

interface Stat {
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
  const postmaster = statOf(rows[0]!.pid)!.parent;
  await client.end();
  return () => {
    const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    const children = processes.map((name) => statOf(Number(name))).filter((stat) => stat?.parent === postmaster);
    const own = statOf(postmaster)!;
    const backends = children.reduce((sum, stat) => sum + stat!.own, own.own + own.ofEndedChildren);
    return {
      node: milliseconds(statOf(pid)!.own),
      postgres: milliseconds(backends),
      generators: milliseconds(statOf(process.pid)!.ofEndedChildren),
    };
  };
}

const milliseconds = (ticks: number) => (ticks * 1000) / ticksPerSecond;

/** Null if the process has ended. */
function statOf(pid: number): Stat | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const [user, system, childUser, childSystem] = fields.slice(11, 15) as [number, number, number, number];
    return { parent: fields[1]!, own: user + system, ofEndedChildren: childUser + childSystem };
  } catch {
    return null;
  }
}
