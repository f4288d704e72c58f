import { expect, it, vi } from 'vitest';
import type { RegionView } from '../../hosts/part.ts';
import { silentLogger } from '../../platform/log.ts';
import { groupBalance, POLL_MS } from './balance.ts';
import type { NfsGroup } from './group.ts';
import type { GroupRecords } from './records.ts';

it('the lock of a takeover in progress is not broken', async () => {
  vi.useFakeTimers();
  const lock = Promise.withResolvers<boolean>();
  let holder: { host: string; cookie: string } | null = null;
  const takeOver = vi.fn<() => Promise<boolean>>(() => {
    // The cluster has given the lock, but its response is late.
    holder = { host: 'h1', cookie: 'h1/1' };
    return lock.promise;
  });
  const breakLock = vi.fn<() => Promise<void>>(async () => undefined);
  const group = { address: '10.77.2.1', shares: new Map([['share', {}]]), isHeld: () => false, takeOver };
  const host = { name: 'h1', leaseValid: true, converged: true, state: 'active' };
  const balance = groupBalance({
    groups: new Map([[group.address, group as unknown as NfsGroup]]),
    current: () => ({
      region: { self: 'h1', hosts: [host] } as unknown as RegionView,
      records: { holder: async () => holder, breakLock } as unknown as GroupRecords,
    }),
    log: silentLogger,
  });
  balance.start();
  await vi.advanceTimersByTimeAsync(POLL_MS * 3);
  expect(takeOver).toHaveBeenCalledTimes(1);
  expect(breakLock).not.toHaveBeenCalled();
  lock.resolve(true);
  balance.stop();
  vi.useRealTimers();
});
