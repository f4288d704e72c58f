import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { RegionView } from '../../hosts/part.ts';
import { silentLogger } from '../../platform/log.ts';
import { groupBalance, POLL_MS, REBALANCE_MS } from './balance.ts';
import type { NfsGroup } from './group.ts';
import type { GroupRecords } from './records.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Of the host h1. */
function balanceOf(groups: object[], records: Partial<GroupRecords>, names = ['h1']) {
  const hosts = () => names.map((name) => ({ name, leaseValid: true, converged: true, state: 'active' }));
  return groupBalance({
    groups: new Map((groups as NfsGroup[]).map((group) => [group.address, group])),
    current: () => ({
      region: { self: 'h1', hosts: hosts() } as unknown as RegionView,
      records: records as GroupRecords,
    }),
    log: silentLogger,
  });
}

it('the lock of a takeover in progress is not broken', async () => {
  const lock = Promise.withResolvers<boolean>();
  let holder: { host: string; cookie: string } | null = null;
  const takeOver = vi.fn<() => Promise<boolean>>(() => {
    // The cluster has given the lock, but its response is late.
    holder = { host: 'h1', cookie: 'h1/1' };
    return lock.promise;
  });
  const breakLock = vi.fn<() => Promise<void>>(async () => undefined);
  const group = { address: '10.77.2.1', shares: new Map([['share', {}]]), isHeld: () => false, takeOver };
  const balance = balanceOf([group], { holder: async () => holder, breakLock });
  balance.start();
  await vi.advanceTimersByTimeAsync(POLL_MS * 3);
  expect(takeOver).toHaveBeenCalledTimes(1);
  expect(breakLock).not.toHaveBeenCalled();
  lock.resolve(true);
  balance.stop();
});

it('a group is handed over to a host that returned, but not while the cluster is away', async () => {
  const end = vi.fn<NfsGroup['end']>(async () => ({ released: Promise.resolve() }));
  const groups = ['10.77.2.1', '10.77.2.2'].map((address) => ({
    ...{ address, shares: new Map([['share', {}]]), end },
    ...{ isHeld: () => true, isServing: () => true },
  }));
  let isAway = true;
  const requireFencing = async () => {
    if (isAway) throw new Error('the monitors do not respond');
  };
  const balance = balanceOf(groups, { requireFencing }, ['h1', 'h2']);
  balance.start();
  await vi.advanceTimersByTimeAsync(REBALANCE_MS * 2);
  expect(end).not.toHaveBeenCalled();
  isAway = false;
  await vi.advanceTimersByTimeAsync(POLL_MS);
  expect(end).toHaveBeenCalledTimes(1);
  balance.stop();
});

it('a group that no other host takes is taken back, and handed over to this host more and more rarely', async () => {
  const groups = ['10.77.2.1', '10.77.2.2'].map((address) => {
    let isHeld = true;
    return {
      ...{ address, shares: new Map([['share', {}]]), isHeld: () => isHeld, isServing: () => isHeld },
      end: vi.fn<NfsGroup['end']>(async () => {
        isHeld = false;
        return { released: Promise.resolve() };
      }),
      takeOver: async () => (isHeld = true),
    };
  });
  const areHeld = () => groups.every((group) => group.isHeld());
  const handOvers = () => groups.flatMap(({ end }) => end.mock.calls).length;
  const balance = balanceOf(groups, { requireFencing: async () => {}, holder: async () => null }, ['h1', 'h2']);
  balance.start();
  await vi.advanceTimersByTimeAsync(REBALANCE_MS + POLL_MS);
  expect([handOvers(), areHeld()]).toEqual([1, false]);
  await vi.advanceTimersByTimeAsync(6000);
  expect(areHeld()).toBe(true);
  await vi.advanceTimersByTimeAsync(50_000);
  expect(handOvers()).toBe(1);
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(handOvers()).toBeLessThan(8);
  expect(areHeld()).toBe(true);
  balance.stop();
});

it('a host that gave a group up soon gets no group back at once, unless it has left and returned', async () => {
  let holder: { host: string; cookie: string } | null = { host: 'h3', cookie: 'h3/1' };
  const held = new Set(['10.77.2.1']);
  const groups = ['10.77.2.1', '10.77.2.2'].map((address) => ({
    ...{
      address,
      shares: new Map([['share', {}]]),
      isHeld: () => held.has(address),
      isServing: () => held.has(address),
    },
    end: vi.fn<NfsGroup['end']>(async () => ({ released: Promise.resolve() })),
    takeOver: async () => !!held.add(address),
  }));
  const names = ['h1', 'h3'];
  const balance = balanceOf(groups, { requireFencing: async () => {}, holder: async () => holder }, names);
  balance.start();
  await vi.advanceTimersByTimeAsync(POLL_MS);
  holder = null;
  await vi.advanceTimersByTimeAsync(REBALANCE_MS * 1.5);
  expect(held.size).toBe(2);
  expect(groups[0]!.end).not.toHaveBeenCalled();
  names.pop();
  await vi.advanceTimersByTimeAsync(POLL_MS);
  names.push('h3');
  await vi.advanceTimersByTimeAsync(REBALANCE_MS + POLL_MS);
  expect(groups[0]!.end).toHaveBeenCalledOnce();
  balance.stop();
});
