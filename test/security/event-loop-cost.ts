/** What the event loop of this thread spends: CPU time of the longest turn, and memory at its peak. */
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export interface Cost {
  /** CPU time of this thread in the longest turn of its event loop. Independent of what else the machine does. */
  blockedMs: number;
  /** Memory above that at the start. */
  bytes: number;
}

/**
 * Starts to watch; the returned function ends it. The loop spins meanwhile, so that every turn is seen. `clean`: without
 * what earlier requests left in memory, which takes a while.
 */
export function watchEventLoop({ clean }: { clean: boolean }): () => Cost {
  if (clean) collectGarbage();
  const before = memory();
  let [blockedMs, peak, isOver] = [0, before, false];
  let measuredAt = performance.now();
  let last = cpuMs();
  const look = () => {
    const now = cpuMs();
    blockedMs = Math.max(blockedMs, now - last);
    if (isOver || performance.now() - measuredAt > memoryEveryMs) {
      peak = Math.max(peak, memory());
      measuredAt = performance.now();
    }
    if (!isOver) setImmediate(look);
    last = cpuMs();
  };
  setImmediate(look);
  return () => {
    isOver = true;
    look();
    return { blockedMs, bytes: peak - before };
  };
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

const memoryEveryMs = 5;

/** Without the youngest objects: the loop that measures makes most of them, and they go soon. */
function memory(): number {
  const spaces = getHeapSpaceStatistics().filter((space) => space.space_name !== 'new_space');
  return spaces.reduce((sum, space) => sum + space.space_used_size, getHeapStatistics().external_memory);
}
