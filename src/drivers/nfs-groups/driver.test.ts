import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { Publisher } from '../../hosts/part.ts';
import { silentLogger } from '../../platform/log.ts';
import type { CephBridge } from '../ceph/bridge.ts';
import { createCephFileShareDriver } from './driver.ts';
import type { PublishedShare } from './share-state.ts';

const group = '10.77.2.1';
const signal = new AbortController().signal;

/** A driver with one server that has the share `id`, whose group nobody holds. */
async function driverWith(id: string, serverSeconds: number) {
  const server = { host: 'h1', serving: true, shares: { [id]: 'stamp' } };
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
  const driver = createCephFileShareDriver({
    bridge: { call, problem: () => null, start: ignore, stop: ignore } as unknown as CephBridge,
    publisher: { publish: ignore, states: async () => new Map() } as unknown as Publisher<PublishedShare>,
    ...{ regionId: 1, pool: 'volumes', filesystem: 'shares', serverSeconds, log: silentLogger },
  });
  await driver.start();
  return { driver, state };
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
