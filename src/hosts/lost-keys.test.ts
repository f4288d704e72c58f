/** The loss of the key file that encrypted the published states. */
import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import type { DesiredLoadBalancer } from '../drivers/load-balancer.ts';
import { createKeyring } from '../platform/encryption.ts';
import { createPublishedLoadBalancerDriver } from './load-balancers.ts';
import type { Publisher } from './part.ts';
import { eventually, openRegion } from './test-region.ts';

it('states that do not decrypt are reported, and a host serves them once they are published again', async (t) => {
  const region = await openRegion(t);
  const [old] = await region.startAll('h1');
  await Promise.all(['a', 'b'].map((id) => region.publish(id, { id })));
  await old!.stop('stop');

  const keys = createKeyring([{ id: 'new', key: randomBytes(32) }]);
  const { publisher, publish } = await region.startWorker(keys);
  const driver = createPublishedLoadBalancerDriver(publisher as Publisher<DesiredLoadBalancer>, () => {
    throw new Error('not called');
  });
  expect(await publisher.states()).toEqual(new Map());
  expect((await driver.findDamaged!()).sort()).toEqual(['a', 'b']);
  expect((await publisher.undecodable()).get('a')!.message).toContain('restore its line');
  // Not missing: the rows of both exist, so neither is quarantined.
  expect((await driver.list()).sort()).toEqual(['a', 'b']);

  await expect(publish('a', { id: 'a' })).rejects.toThrow('no host of the region serves');
  const restarted = await region.start('h2', { keys });
  await restarted.agent.converged;
  await eventually(() => expect(restarted.world.get('a')).toEqual({ id: 'a' }));
  expect(await driver.findDamaged!()).toEqual(['b']);
  await publish('b', { id: 'b' });
  expect([...restarted.world.keys()].sort()).toEqual(['a', 'b']);
  expect(await publisher.states()).toEqual(new Map(['a', 'b'].map((id) => [id, { id }])));
});
