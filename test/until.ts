import { setTimeout as sleep } from 'node:timers/promises';

/** Polls with increasing intervals. @throws after this number of seconds with the expected condition */
export async function until(condition: () => unknown, seconds: number, what: string): Promise<void> {
  const began = performance.now();
  while (!(await condition())) {
    const waited = performance.now() - began;
    if (waited > seconds * 1000) throw new Error(`not within ${seconds} s: ${what}`);
    await sleep(Math.min(200, 20 + waited / 20));
  }
}
