import { randomUUID } from 'node:crypto';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import type { CephBridge } from './bridge.ts';
import { cephError } from './errors.ts';
import { cephSubvolumes } from './subvolumes.ts';

it('a user whose capabilities changed keeps its key, with which hosts serve', async () => {
  const id = randomUUID();
  const users = new Map([[`client.cloudyard.1.${id}`, { key: 'the key', caps: 'of an earlier version' }]]);
  const subvolume = { path: '/volumes/x', bytes_quota: 1024 ** 3, data_pool: 'data', pool_namespace: 'own' };
  const responses: Record<string, (entity: string, caps: string) => unknown> = {
    'fs subvolumegroup create': () => null,
    'fs subvolume ls': () => [{ name: id }],
    'fs subvolume info': () => subvolume,
    'auth get-or-create'(entity, caps) {
      const found = users.get(entity) ?? { key: 'another key', caps };
      users.set(entity, found);
      if (found.caps !== caps) throw cephError('command', constants.errno.EINVAL, 'cap mds does not match');
      return [{ key: found.key }];
    },
    'auth caps': (entity, caps) => void (users.get(entity)!.caps = caps),
    'auth rm': (entity) => void users.delete(entity),
  };
  const call = async (operation: string, { command }: { command: Record<string, unknown> }) => {
    if (operation === 'omap.get') return {};
    const { prefix, entity, caps } = command;
    return JSON.stringify(responses[prefix as string]!(String(entity), String(caps)) ?? null);
  };
  const bridge = { call } as unknown as CephBridge;
  const subvolumes = cephSubvolumes({ bridge, regionId: 1, pool: 'volumes', filesystem: 'shares' });
  for (const _ of ['changed', 'unchanged']) {
    expect(await subvolumes.ensure(id, { gib: 1, settledGib: 1 })).toMatchObject({
      key: 'the key',
      path: subvolume.path,
    });
  }
  expect(users.get(`client.cloudyard.1.${id}`)!.caps).toContain('path=/volumes/x');
});

it('a change does not wait for the usage of all shares to be read', async () => {
  const ids = Array.from({ length: 300 }, () => randomUUID());
  const changed = ids.at(-1)!;
  const subvolume = { path: '/x', bytes_quota: 1024 ** 3, bytes_used: 1, data_pool: 'data', pool_namespace: 'own' };
  const responses: Record<string, unknown> = {
    'fs subvolume ls': ids.map((name) => ({ name })),
    'fs subvolume info': subvolume,
    'auth get-or-create': [{ key: 'key' }],
  };
  let commands = 0;
  const call = async (operation: string, args: { command: { prefix: string } }) => {
    if (operation === 'omap.get') return {};
    commands += 1;
    await sleep(1);
    return JSON.stringify(responses[args.command.prefix] ?? null);
  };
  const bridge = { call } as unknown as CephBridge;
  const subvolumes = cephSubvolumes({ bridge, regionId: 1, pool: 'volumes', filesystem: 'shares' });
  await subvolumes.list();
  const usage = subvolumes.usage();
  await vi.waitFor(() => expect(commands).toBeGreaterThan(5), { interval: 1 });
  const before = commands;
  await subvolumes.ensure(changed, { gib: 2, settledGib: 1 });
  expect(commands - before).toBeLessThan(30);
  expect((await usage).size).toBe(ids.length);
});
