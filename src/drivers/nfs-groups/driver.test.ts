import { randomUUID } from 'node:crypto';
import { expect, it, vi } from 'vitest';
import type { Publisher } from '../../hosts/part.ts';
import { silentLogger } from '../../platform/log.ts';
import type { CephBridge } from '../ceph/bridge.ts';
import { createCephFileShareDriver } from './driver.ts';
import type { PublishedShare } from './share-state.ts';

const group = '10.77.2.1';
const signal = new AbortController().signal;

/** A driver with one server that has the share `id`, whose group nobody holds. */
async function driverWith(id: string, serverSeconds: number, undecodable: string[] = []) {
  const server = { host: 'h1', serving: true, shares: { [id]: 'stamp' } };
  const unreadable = new Map(undecodable.map((each) => [each, new Error('key lost is not in secret.keys')]));
  const published = new Map<string, PublishedShare | null>();
  const state = { records: { 'h1/1': JSON.stringify(server) } as Record<string, string>, calls: [] as string[] };
  const responses: Record<string, (args: Record<string, unknown>) => unknown> = {
    'object.list': () => [group],
    'lock.holders': () => [],
    'omap.get': ({ object }) => (object === group ? state.records : {}),
    'omap.remove': () => (state.records = {}),
    'mds.command': () => [],
    command: ({ command }) => ((command as { prefix: string }).prefix === 'fs subvolume ls' ? '[]' : ''),
  };
  const call = async (operation: string, args: Record<string, unknown> = {}) => {
    const { prefix } = (args['command'] ?? {}) as { prefix?: string };
    state.calls.push(prefix ?? operation);
    return responses[operation]!(args);
  };
  const ignore = async () => undefined;
  const log = { ...silentLogger, error: vi.fn<typeof silentLogger.error>() };
  const driver = createCephFileShareDriver({
    bridge: { call, problem: () => null, start: ignore, stop: ignore } as unknown as CephBridge,
    publisher: {
      async publish(id: string, share: PublishedShare | null) {
        unreadable.delete(id);
        published.set(id, share);
      },
      states: async () => new Map(),
      undecodable: async () => new Map(unreadable),
    } as unknown as Publisher<PublishedShare>,
    ...{ regionId: 1, pool: 'volumes', filesystem: 'shares', serverSeconds, log },
  });
  await driver.start();
  return { driver, state, published, log };
}

it('a share that a dead worker unpublished is removed after the servers that may still export it', async () => {
  const id = randomUUID();
  const { driver, state } = await driverWith(id, 20);
  const removal = driver.remove(id, signal);
  // It has read the record of the server, and reads it again.
  await expect
    .poll(() => state.calls.filter((call) => call === 'omap.get').length, { interval: 20 })
    .toBeGreaterThan(2);
  expect(state.calls).not.toContain('auth rm');
  state.records = {};
  await removal;
  expect(state.calls).toContain('auth rm');
});

it('the last share of a group is removed after its server was fenced, because no host takes the group over', async () => {
  const id = randomUUID();
  const { driver, state } = await driverWith(id, 0);
  await driver.remove(id, signal);
  const order = ['mds.command', 'omap.remove', 'auth rm'].map((each) => state.calls.indexOf(each));
  expect(order).toEqual([...order].sort((a, b) => a - b));
  expect(order[0]).toBeGreaterThan(0);
});

it('shares whose published state does not decrypt are reported until they are published again or removed', async () => {
  const [one, other] = [randomUUID(), randomUUID()];
  const { driver, published, log } = await driverWith(one, 0, [one, other]);
  const ids = [one, other].sort();
  expect(driver.status()).toMatchObject({
    healthy: false,
    detail: expect.stringContaining('the published states of 2 file shares cannot be decrypted'),
  });
  // A repeated scan does not repeat the message.
  expect((await driver.findDamaged!()).sort()).toEqual(ids);
  expect(log.error.mock.calls.map(([fields]) => (fields as { id: string }).id).sort()).toEqual(ids);
  expect(await driver.list()).toEqual(ids);

  await driver.remove(one, signal);
  expect(published.get(one)).toBeNull();
  expect(await driver.findDamaged!()).toEqual([other]);
  await driver.remove(other, signal);
  expect(driver.status().healthy).toBe(true);
  expect(await driver.list()).toEqual([]);
});
