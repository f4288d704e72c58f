/** Kills random processes of a data directory with SIGKILL, and measures how long the API is silent afterwards. */
import { setTimeout as sleep } from 'node:timers/promises';
import { readOrEmpty } from '../../src/platform/read-or-empty.ts';
import { parentOf } from '../../src/platform/running-processes.ts';
import type { Random } from '../model/random.ts';
import { processesOf, type Yard } from '../processes.ts';
import type { Figures } from './figures.ts';

interface Victim {
  kind: string;
  pid: number;
}

const silenceSeconds = 60;

/** Kills one process each `everyMs` on average, whatever the silences last, until `isOver`. `own`: the pids of the server and the worker. */
export async function killRandomly(
  yard: Yard,
  own: () => { server: number; worker: number },
  random: Random,
  figures: Figures,
  everyMs: number,
  isOver: () => boolean,
): Promise<void> {
  let next = performance.now();
  while (!isOver()) {
    next += everyMs * (0.5 + random.int(100) / 100);
    await sleep(Math.max(0, next - performance.now()));
    const byKind = Map.groupBy(victimsOf(yard, own()), ({ kind }) => kind);
    const kind = random.maybe([...byKind.keys()]);
    if (kind === undefined) continue;
    const { pid } = random.pick(byKind.get(kind)!);
    if (!killProcess(pid)) continue;
    figures.kills[kind] = (figures.kills[kind] ?? 0) + 1;
    const silence = await untilAnswer(yard);
    (figures.silences[kind] ??= []).push(silence);
    if (silence >= silenceSeconds * 1000)
      figures.failures.push(`no answer within ${silenceSeconds} s after killing ${kind}`);
  }
}

function killProcess(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
}

/** Reads a row of the database until it is answered. */
async function untilAnswer(yard: Yard): Promise<number> {
  const began = performance.now();
  for (;;) {
    // As the last request before the kill may still be answered, an answer counts only if it is sent afterwards.
    const answer = await yard.get('/cloud/v1/networks/1/1?limit=1').catch(() => null);
    const waited = performance.now() - began;
    if (answer?.status === 200 || waited > silenceSeconds * 1000) return waited;
    await sleep(20);
  }
}

function victimsOf(yard: Yard, { server, worker }: { server: number; worker: number }): Victim[] {
  return processesOf(yard.folder).flatMap((pid) => {
    const kind = pid === server ? 'server' : pid === worker ? 'worker' : kindOf(pid);
    return kind === null ? [] : [{ kind, pid }];
  });
}

/** The kind of a daemon by its command line; null for short commands, which end with their worker. */
function kindOf(pid: number): string | null {
  const command = readOrEmpty(`/proc/${pid}/cmdline`).replaceAll('\0', ' ');
  const [program = ''] = command.split(' ');
  if (program.startsWith('postgres:')) return 'PostgreSQL backend';
  if (program.endsWith('/postgres')) return 'PostgreSQL postmaster';
  if (program.endsWith('haproxy')) return isHaproxy(parentOf(pid)) ? 'HAProxy worker' : 'HAProxy master';
  if (program.endsWith('ganesha.nfsd')) return 'NFS-Ganesha';
  if (program.endsWith('rpcbind')) return 'rpcbind';
  if (program.endsWith('docker-registry')) return 'distribution';
  if (/distribution\/gate/.test(command)) return 'registry gate';
  return null;
}

function isHaproxy(pid: number): boolean {
  return readOrEmpty(`/proc/${pid}/comm`).trim() === 'haproxy';
}
