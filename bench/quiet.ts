/**
 * Waits until the machine is idle. Between rounds the bench is idle, so any load comes from other programs. It would affect
 * the sides unequally, because a side with more processes gets a larger share of the processors. The total wait of a run is
 * limited; later rounds start without it.
 */
import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

const sampleMs = 250;
/** Maximum busy share of all processors. */
const quietShare = 0.15;
let remainingMs = 45_000;
let rounds = 0;
let busyRounds = 0;

export async function quiet(): Promise<void> {
  rounds += 1;
  while ((await busyShare()) > quietShare) {
    remainingMs -= sampleMs;
    if (remainingMs > 0) continue;
    busyRounds += 1;
    return;
  }
}

/** A warning about the results, or null. */
export function disturbance(): string | null {
  if (busyRounds === 0) return null;
  return `Other load kept the machine busy before ${busyRounds} of ${rounds} rounds; run the benchmark again on an idle machine.`;
}

async function busyShare(): Promise<number> {
  const before = times();
  await sleep(sampleMs);
  const after = times();
  return 1 - (after.idle - before.idle) / Math.max(1, after.all - before.all);
}

function times(): { idle: number; all: number } {
  const sums = cpus().map(({ times }) => ({ idle: times.idle, all: Object.values(times).reduce((a, b) => a + b) }));
  return sums.reduce((a, b) => ({ idle: a.idle + b.idle, all: a.all + b.all }));
}
