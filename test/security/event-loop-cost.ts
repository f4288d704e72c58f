/** Cost of requests on the event loop of this thread: CPU time of the longest turn, and peak memory. */
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export interface Cost {
  /** CPU time of this thread in the longest turn of its event loop, on a machine of the reference speed. */
  blockedMs: number;
  /** Peak memory minus memory at the start. */
  bytes: number;
}

/**
 * Starts measuring; the returned function ends it. The loop spins meanwhile, so that every turn is measured. `clean`
 * collects garbage of earlier requests first, which is slow.
 */
export function watchEventLoop({ clean }: { clean: boolean }): () => Cost {
  if (clean) collectGarbage();
  const before = memory();
  let [blockedMs, peak, isOver] = [0, before, false];
  let measuredAt = performance.now();
  let last = cpuMs();
  const measure = () => {
    const now = cpuMs();
    blockedMs = Math.max(blockedMs, now - last);
    if (isOver || performance.now() - measuredAt > memoryEveryMs) {
      peak = Math.max(peak, memory());
      measuredAt = performance.now();
    }
    if (!isOver) setImmediate(measure);
    last = cpuMs();
  };
  setImmediate(measure);
  return () => {
    isOver = true;
    measure();
    // Only what may exceed a bound is worth a measurement of the machine.
    return { blockedMs: blockedMs > scaledAboveMs ? blockedMs / slowness() : blockedMs, bytes: peak - before };
  };
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const rows = Array.from({ length: 2000 }, (_, i) => ({
  id: `row ${i}`,
  name: 'name'.repeat(10),
  tags: { i, list: [i] },
}));

/** CPU time of `work` on the machine where the bounds were chosen. */
const referenceMs = 7;
const rounds = 5;
const scaledAboveMs = 25;

/**
 * How many times slower than the reference this machine is now, at least 1. The CPU time of the same work differs between
 * machines, and other load takes caches and the other half of a core.
 */
function slowness(): number {
  const times = Array.from({ length: rounds }, () => {
    const start = cpuMs();
    work();
    return cpuMs() - start;
  });
  return Math.max(1, times.sort((a, b) => a - b)[Math.floor(rounds / 2)]! / referenceMs);
}

function work(): void {
  for (let i = 0; i < 5; i++) {
    const copies: typeof rows = JSON.parse(JSON.stringify(rows));
    const byId = new Map(copies.map((row) => [row.id, row]));
    for (const { id } of rows) byId.get(id)!.tags.list.push(i);
  }
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

const memoryEveryMs = 5;

/** Excludes the youngest objects, because the measuring loop creates most of them. */
function memory(): number {
  const spaces = getHeapSpaceStatistics().filter((space) => space.space_name !== 'new_space');
  return spaces.reduce((sum, space) => sum + space.space_used_size, getHeapStatistics().external_memory);
}
