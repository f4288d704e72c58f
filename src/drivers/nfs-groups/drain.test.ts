import { expect, it } from 'vitest';
import type { RegionView } from '../../hosts/part.ts';
import { silentLogger } from '../../platform/log.ts';
import { POLL_MS } from './balance.ts';
import { drainGroups } from './drain.ts';
import type { NfsGroup } from './group.ts';
import type { GroupRecords } from './records.ts';

it('a host is not drained while it takes a group over', async () => {
  const state = { isHeld: false, isTaking: true };
  const group = { address: '10.77.2.1', isHeld: () => state.isHeld } as unknown as NfsGroup;
  const hosts = ['h1', 'h2'].map((name) => ({ name, leaseValid: true, converged: true, state: 'active' }));
  const servers = async () => new Map([['h2/1', { host: 'h2', serving: true, shares: {} }]]);
  const drained = drainGroups({
    groups: new Map([[group.address, group]]),
    async giveUp() {
      state.isHeld = false;
      return true;
    },
    isTaking: () => state.isTaking,
    current: () => ({
      region: { self: 'h1', hosts } as unknown as RegionView,
      records: { servers } as unknown as GroupRecords,
    }),
    signal: new AbortController().signal,
    log: silentLogger,
  });
  // The response of the cluster, which has given the lock, is late.
  setTimeout(() => Object.assign(state, { isHeld: true, isTaking: false }), POLL_MS * 1.5);
  await drained;
  expect(state).toEqual({ isHeld: false, isTaking: false });
});

it('a group stays while no other host could take it', async () => {
  let [isHeld, refusals] = [true, 0];
  const group = { address: '10.77.2.1', isHeld: () => isHeld } as unknown as NfsGroup;
  const hosts = ['h1', 'h2'].map((name) => ({ name, leaseValid: true, converged: true, state: 'active' }));
  const giveUp = async () => {
    if (refusals === 2) isHeld = false;
    else refusals += 1;
    return !isHeld;
  };
  const servers = async () => new Map([['h2/1', { host: 'h2', serving: !isHeld, shares: {} }]]);
  await drainGroups({
    ...{ groups: new Map([[group.address, group]]), giveUp, isTaking: () => false },
    current: () => ({
      region: { self: 'h1', hosts } as unknown as RegionView,
      records: { servers } as unknown as GroupRecords,
    }),
    signal: new AbortController().signal,
    log: silentLogger,
  });
  expect({ isHeld, refusals }).toEqual({ isHeld: false, refusals: 2 });
});

it('a group that no other host serves is taken back, and the host is not drained', async () => {
  let isHeld = true;
  const takenBack = Promise.withResolvers<void>();
  const group = {
    ...{ address: '10.77.2.1', shares: new Map([['share', {}]]), isHeld: () => isHeld },
    async takeOver() {
      takenBack.resolve();
      return (isHeld = true);
    },
  } as unknown as NfsGroup;
  const hosts = ['h1', 'h2'].map((name) => ({ name, leaseValid: true, converged: true, state: 'active' }));
  const undrained = new AbortController();
  let hasEnded = false;
  const drained = drainGroups({
    ...{ groups: new Map([[group.address, group]]), giveUp: async () => !(isHeld = false), isTaking: () => false },
    current: () => ({
      region: { self: 'h1', hosts } as unknown as RegionView,
      records: { servers: async () => new Map() } as unknown as GroupRecords,
    }),
    ...{ signal: undrained.signal, log: silentLogger, stepMs: POLL_MS },
  }).finally(() => (hasEnded = true));
  await takenBack.promise;
  expect({ isHeld, hasEnded }).toEqual({ isHeld: true, hasEnded: false });
  undrained.abort();
  await expect(drained).rejects.toThrow();
  expect(isHeld).toBe(true);
});
