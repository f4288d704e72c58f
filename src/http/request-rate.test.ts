import { expect, it } from 'vitest';
import { createRateBuckets, leaseRates } from './request-rate.ts';

const rate = { clientId: 1, perSecond: 10, burst: 100 };

it('a bucket allows a burst, then its rate, and names the seconds until the next request', () => {
  let time = 0;
  const { take } = createRateBuckets(() => time);
  for (let i = 0; i < 100; i++) expect(take(rate)).toBe(0);
  expect(take(rate)).toBe(1);
  expect(take({ ...rate, perSecond: 0.1 })).toBe(10);
  expect(take({ ...rate, clientId: 2 })).toBe(0);
  time = 500;
  for (let i = 0; i < 5; i++) expect(take(rate)).toBe(0);
  expect(take(rate)).toBe(1);
});

it('processes that lease from one bucket allow its requests together, and no more', async () => {
  const buckets = createRateBuckets(() => 0);
  const leases: number[] = [];
  const processes = Array.from({ length: 3 }, () =>
    leaseRates(async (request) => {
      leases.push(request.count);
      return buckets.lease(request);
    }),
  );
  const results = await Promise.all(Array.from({ length: 300 }, (_, i) => processes[i % 3]!.take(rate)));
  expect(results.filter((seconds) => seconds === 0)).toHaveLength(100);
  expect(results.filter((seconds) => seconds > 0).every((seconds) => seconds === 1)).toBe(true);
  expect(leases.filter((count) => count !== 2)).toEqual([]);
});

it('a lease that fails fails its requests only', async () => {
  let isUp = false;
  const { take } = leaseRates(async ({ count }) => {
    if (!isUp) throw new Error('the process ended');
    return { taken: count, waitSeconds: 0 };
  });
  await expect(take(rate)).rejects.toThrow('the process ended');
  isUp = true;
  expect(await take(rate)).toBe(0);
});
