import { expect, it } from 'vitest';
import { coarseSpace, diskStatus } from './disk-space.ts';

it('a data directory that cannot be read is unhealthy', () => {
  const status = diskStatus('/nonexistent/cloudyard', 5);
  expect(status).toMatchObject({ healthy: false, freeBytes: 0, totalBytes: 0, reserveBytes: 0 });
  expect(status.detail).toContain('ENOENT');
});

it('a report changes with a thousandth of the filesystem, not with every write, and never names more than is free', () => {
  const space = { totalBytes: 100_000_000, reserveBytes: 5_000_000 };
  const free = (freeBytes: number) => coarseSpace({ ...space, freeBytes }).freeBytes;
  expect([free(50_099_999), free(50_000_001), free(49_999_999), free(0)]).toEqual([
    50_000_000, 50_000_000, 49_900_000, 0,
  ]);
  expect(coarseSpace({ freeBytes: 7, totalBytes: 10, reserveBytes: 1 }).freeBytes).toBe(7);
});

it('the report of a data directory is coarse', () => {
  const status = diskStatus('/', 5);
  expect(status.freeBytes).toBe(coarseSpace(status).freeBytes);
});
