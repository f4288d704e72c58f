/**
 * Waits until the rest of the machine is quiet. Between two rounds nothing of the bench works, so whatever keeps the
 * processors busy then is somebody else's, and would weigh on the sides unequally: the more processes a side has, the more
 * of the machine it is left. The waiting is limited for a run as a whole; afterwards rounds are taken as they come.
 */
import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

const lookMs = 250;
/** Of all processors together. */
const quietShare = 0.15;
let patienceMs = 45_000;
let rounds = 0;
let busyRounds = 0;

export async function quiet(): Promise<void> {
  rounds += 1;
  while ((await busyShare()) > quietShare) {
    patienceMs -= lookMs;
    if (patienceMs > 0) continue;
    busyRounds += 1;
    return;
  }
}

/** What to think of the figures; null when nothing speaks against them. */
export function disturbance(): string | null {
  if (busyRounds === 0) return null;
  return `Something else kept the machine busy before ${busyRounds} of ${rounds} rounds: run it again on a quiet one.`;
}

async function busyShare(): Promise<number> {
  const before = times();
  await sleep(lookMs);
  const after = times();
  return 1 - (after.idle - before.idle) / Math.max(1, after.all - before.all);
}

function times(): { idle: number; all: number } {
  const sums = cpus().map(({ times }) => ({ idle: times.idle, all: Object.values(times).reduce((a, b) => a + b) }));
  return sums.reduce((a, b) => ({ idle: a.idle + b.idle, all: a.all + b.all }));
}
