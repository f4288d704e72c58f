import { expect, it, onTestFinished } from 'vitest';
import { silentLogger } from '../../platform/log.ts';
import type { GroupAddresses } from './addresses.ts';
import { nfsGroup } from './group.ts';
import type { GroupRecords, ServerRecord } from './records.ts';
import type { GroupServer } from './server.ts';
import { type PublishedShare, stampOf } from './share-state.ts';

const ignore = async () => undefined;

it('records a share as served when it has responded', async () => {
  const responding = new Set(['a']);
  const written: ServerRecord[] = [];
  const group = nfsGroup({
    ...{ address: '10.77.2.1', host: 'h1', mayServe: () => true, log: silentLogger },
    records: {
      ...{ lock: async () => true, unlock: ignore, remove: ignore },
      write: async (_group: string, _cookie: string, record: ServerRecord) => void written.push(record),
    } as unknown as GroupRecords,
    addresses: { addLocally: ignore, add: ignore, remove: ignore } as unknown as GroupAddresses,
    createServer: () =>
      ({
        ...{ mayServeFor: () => undefined, isUp: () => true, kill: ignore },
        start: async () => new Set(responding),
        probe: async () => new Set(responding),
      }) as unknown as GroupServer,
  });
  onTestFinished(async () => void (await group.end()));
  const share = { group: group.address, access: [] as unknown[] } as PublishedShare;
  for (const [at, id] of ['a', 'b'].entries()) group.shares.set(id, { ...share, exportId: at + 1 });
  const [a, b] = [...group.shares.values()].map(stampOf);
  await group.takeOver();
  expect(written).toEqual([
    { host: 'h1', serving: false, shares: { a, b } },
    { host: 'h1', serving: true, shares: { a, b: 'uncertain' } },
  ]);
  responding.add('b');
  await expect.poll(() => written.at(-1)).toEqual({ host: 'h1', serving: true, shares: { a, b } });
  expect(written).toHaveLength(3);
});

it('does not keep an address that was being added when the group was given up', async () => {
  const here = new Set<string>();
  const adding = Promise.withResolvers<void>();
  const added = Promise.withResolvers<void>();
  const group = nfsGroup({
    ...{ address: '10.77.2.1', host: 'h1', mayServe: () => true, log: silentLogger },
    records: { lock: async () => true, unlock: ignore, remove: ignore, write: ignore } as unknown as GroupRecords,
    addresses: {
      addLocally: ignore,
      async add(address: string) {
        adding.resolve();
        await added.promise;
        here.add(address);
      },
      remove: async (address: string) => void here.delete(address),
    } as unknown as GroupAddresses,
    createServer: () =>
      ({ mayServeFor: () => undefined, start: async () => new Set(), kill: ignore }) as unknown as GroupServer,
  });
  group.shares.set('a', { group: group.address, access: [] as unknown[] } as PublishedShare);
  const taken = group.takeOver();
  await adding.promise;
  const ended = group.end();
  setTimeout(() => added.resolve(), 50);
  await ended;
  expect(here).toEqual(new Set());
  await expect(taken).rejects.toThrow('is lost');
  expect(here).toEqual(new Set());
});
