/** Cost of requests on the event loop of this thread: CPU time of the longest turn, and peak memory. */
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export interface Cost {
  /** CPU time of this thread in the longest turn of its event loop. Other load on the machine does not change it. */
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

/** Excludes the youngest objects, because the measuring loop creates most of them. */
function memory(): number {
  const spaces = getHeapSpaceStatistics().filter((space) => space.space_name !== 'new_space');
  return spaces.reduce((sum, space) => sum + space.space_used_size, getHeapStatistics().external_memory);
}
