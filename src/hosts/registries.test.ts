import { expect, it, onTestFinished } from 'vitest';
import { requires } from '../../test/requires.ts';
import type { CephMount } from '../drivers/ceph/mount.ts';
import { registryTestHost, testHosting } from '../drivers/distribution/test-host.ts';
import type { RegistryDriver, RegistryHosting } from '../drivers/registry.ts';
import type { Publisher } from './part.ts';
import { createPublishedRegistryDriver, registryPart } from './registries.ts';

const signal = new AbortController().signal;

it.skipIf(!requires('docker-registry'))(
  'registries end when they are stopped several times, also while they start, and serve again',
  async () => {
    const host = await registryTestHost();
    let mounted = 0;
    let unmountFails = true;
    const mount: CephMount = {
      open: async () => void (mounted += 1),
      async close() {
        if (unmountFails) throw new Error('the mount is busy');
        mounted = 0;
      },
      release: async () => undefined,
      isMounted: () => mounted > 0,
    };
    const part = registryPart(async () => {
      const driver = host.driver({ shared: { replica: 'h1', mount: () => mount } });
      await driver.start();
      return driver;
    });
    onTestFinished(async () => {
      unmountFails = false;
      await part.stopServing();
      await host.cleanUp();
    });
    const answer = () =>
      fetch(`http://127.0.0.1:${host.port}/v2/`).then(
        ({ status }) => status,
        () => null,
      );
    const states = new Map([['hosting', testHosting]]);

    await part.start(null as never);
    expect(await part.converge(states, signal)).toEqual(new Map());
    expect(await answer()).toBe(401);
    await expect(part.stopServing()).rejects.toThrow('busy');
    expect(await answer()).toBeNull();

    unmountFails = false;
    await Promise.all([part.stopServing(), part.stopServing()]);
    await part.stopServing();
    expect(mounted).toBe(0);
    expect(part.status()).toMatchObject({ real: false, healthy: false });

    await part.start(null as never);
    const converged = part.converge(states, signal);
    await Promise.all([part.stopServing(), part.stopServing(), converged]);
    expect(await answer()).toBeNull();

    await part.start(null as never);
    await part.converge(states, signal);
    expect([await answer(), mounted]).toEqual([401, 1]);
  },
);

it('settings of registries are published once, and again after a failover that lost them', async () => {
  let stored: string | null = null;
  let publications = 0;
  const publisher = {
    async publish(_id: string, hosting: RegistryHosting) {
      stored = JSON.stringify(hosting);
      publications += 1;
    },
    states: async () => new Map(stored === null ? [] : [['hosting', JSON.parse(stored) as RegistryHosting]]),
  } as unknown as Publisher<RegistryHosting>;
  const store = { address: '' } as unknown as RegistryDriver;
  const driver = createPublishedRegistryDriver(publisher, store, () => ({}) as never);

  await driver.configure(testHosting);
  await driver.configure(testHosting);
  expect(publications).toBe(1);
  stored = null;
  await driver.configure(testHosting);
  expect(publications).toBe(2);
});
