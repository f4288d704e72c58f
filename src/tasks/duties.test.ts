import { expect, it } from 'vitest';
import { silentLogger } from '../platform/log.ts';
import { repeat } from './duties.ts';

/** The delays before the first runs of a duty, in seconds. `work` may fail. */
async function delaysOf(
  seconds: number,
  work: () => Promise<unknown>,
  firstSeconds?: number,
  pace?: () => number,
): Promise<number[]> {
  const stop = new AbortController();
  const delays: number[] = [];
  const sleep = async (milliseconds: number) => {
    delays.push(milliseconds / 1000);
    if (delays.length === 4) stop.abort();
  };
  await repeat({ seconds, work }, { signal: stop.signal, log: silentLogger, firstSeconds, pace, sleep });
  return delays;
}

it('an hourly duty runs within a minute after the start, at a random time, and then each hour', async () => {
  const firsts = new Set<number>();
  for (let process = 0; process < 20; process++) {
    let runs = 0;
    const [first, ...others] = await delaysOf(3600, async () => void runs++);
    expect(first).toBeGreaterThanOrEqual(20);
    expect(first).toBeLessThanOrEqual(60);
    expect(others).toEqual([3600, 3600, 3600]);
    expect(runs).toBe(3);
    firsts.add(first!);
  }
  expect(firsts.size).toBeGreaterThan(10);
});

it('a duty with a short interval, or with a first delay of its own, keeps it', async () => {
  expect(await delaysOf(2, async () => {})).toEqual([2, 2, 2, 2]);
  expect(await delaysOf(3600, async () => {}, 3600)).toEqual([3600, 3600, 3600, 3600]);
});

it('a duty runs more often while the pace is higher', async () => {
  let runs = 0;
  const pace = () => (runs === 2 ? 5 : 1);
  expect(await delaysOf(2, async () => (runs += 1), 2, pace)).toEqual([2, 2, 0.4, 2]);
});

it('a run that fails does not end the duty', async () => {
  const failing = () => Promise.reject(new Error('the database is away'));
  expect(await delaysOf(10, failing)).toEqual([10, 10, 10, 10]);
});
