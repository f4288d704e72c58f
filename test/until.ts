import { setTimeout as sleep } from 'node:timers/promises';

/** A machine that runs many tests at a time, or that others use too, stalls for seconds. */
export const slowdown = 3;

/**
 * Polls with increasing intervals.
 * @throws with the expected condition after three times this number of seconds, which is what an idle machine may need
 */
export async function until(condition: () => unknown, seconds: number, what: string): Promise<void> {
  const deadline = seconds * slowdown;
  const began = performance.now();
  while (!(await condition())) {
    const waited = performance.now() - began;
    if (waited > deadline * 1000) throw new Error(`not within ${deadline} s: ${what}`);
    await sleep(Math.min(200, 20 + waited / 20));
  }
}
