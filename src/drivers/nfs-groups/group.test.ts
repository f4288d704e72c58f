import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { silentLogger } from '../../platform/log.ts';
import type { GroupAddresses } from './addresses.ts';
import { nfsGroup } from './group.ts';
import type { GroupRecords, ServerRecord } from './records.ts';
import type { GroupServer } from './server.ts';
import { type PublishedShare, stampOf } from './share-state.ts';

const GIB = 1024 ** 3;
const ignore = async () => undefined;
const anyAddress: Partial<GroupAddresses> = { addLocally: ignore, add: ignore, remove: ignore };

/** A group on this host, with what its server writes into the record. */
function groupWith(server: Partial<GroupServer>, addresses: Partial<GroupAddresses> = anyAddress) {
  const written: ServerRecord[] = [];
  const group = nfsGroup({
    ...{ address: '10.77.2.1', host: 'h1', mayServe: () => true, log: silentLogger },
    records: {
      ...{ lock: async () => true, unlock: ignore, remove: ignore },
      write: async (_group: string, _cookie: string, record: ServerRecord) => void written.push(record),
    } as unknown as GroupRecords,
    addresses: addresses as GroupAddresses,
    createServer: () =>
      ({ mayServeFor: () => undefined, isUp: () => true, kill: ignore, ...server }) as unknown as GroupServer,
  });
  onTestFinished(async () => void (await group.end()));
  const share = { group: group.address, exportId: 1, access: [] as unknown[], sizeGib: 1 } as unknown as PublishedShare;
  return { group, share, written };
}

it('records a share as served when it has responded', async () => {
  const responding = new Set(['a']);
  const respond = async () => new Set(responding);
  const { group, share, written } = groupWith({ start: respond, probe: respond });
  group.shares.set('a', share);
  group.shares.set('b', { ...share, exportId: 2, sizeGib: null });
  const [a, b] = [...group.shares.values()].map(stampOf);
  await group.takeOver();
  expect(written).toEqual([
    { host: 'h1', serving: false, shares: { a, b }, sizes: {} },
    { host: 'h1', serving: true, shares: { a, b: 'uncertain' }, sizes: { a: 1, b: 0 } },
  ]);
  responding.add('b');
  await expect.poll(() => written.at(-1)).toMatchObject({ serving: true, shares: { a, b } });
  expect(written).toHaveLength(3);
});

it('has extended a share when its export shows the new size, and records it', async () => {
  const shown = new Map([['a', GIB]]);
  const respond = async () => new Set(['a']);
  const { group, share, written } = groupWith({ start: respond, probe: respond, sizes: async () => shown });
  group.shares.set('a', share);
  await group.takeOver();
  group.shares.set('a', { ...share, sizeGib: 2 });
  let isExtended = false;
  const extended = group.refresh('a').then(() => (isExtended = true));
  await sleep(150);
  expect(isExtended).toBe(false);
  expect(written.at(-1)).toMatchObject({ sizes: { a: 1 } });
  shown.set('a', 2 * GIB);
  await extended;
  expect(written.at(-1)).toEqual({ host: 'h1', serving: true, shares: { a: stampOf(share) }, sizes: { a: 2 } });
});

it('does not keep an address that was being added when the group was given up', async () => {
  const here = new Set<string>();
  const adding = Promise.withResolvers<void>();
  const added = Promise.withResolvers<void>();
  const { group, share } = groupWith(
    { start: async () => new Set() },
    {
      addLocally: ignore,
      async add(address) {
        adding.resolve();
        await added.promise;
        here.add(address);
      },
      remove: async (address) => void here.delete(address),
    },
  );
  group.shares.set('a', share);
  const taken = group.takeOver();
  await adding.promise;
  const ended = group.end();
  setTimeout(() => added.resolve(), 50);
  await ended;
  expect(here).toEqual(new Set());
  await expect(taken).rejects.toThrow('is lost');
  expect(here).toEqual(new Set());
});

it('is given up while the time until which its server may run cannot be written', async () => {
  const respond = async () => new Set(['a']);
  let isWritable = true;
  const mayServeFor = () => {
    if (!isWritable) throw new Error('EROFS: read-only file system');
  };
  const { group, share } = groupWith({ start: respond, probe: respond, mayServeFor });
  group.shares.set('a', share);
  await group.takeOver();
  isWritable = false;
  await expect.poll(group.isHeld).toBe(false);
});
