/** The contract of registry drivers (registry.ts), checked for each driver. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../test/requires.ts';
import { registryTestHost, testHosting } from './distribution/test-host.ts';
import type { RequestHold, RegistryDriver } from './registry.ts';
import { createSimulatedRegistryDriver } from './simulated/registry.ts';
import { adoptingSubject, simulatedSubject, type Subject } from './test-subject.ts';

interface RegistrySubject extends Subject<RegistryDriver> {
  /** Stores an image, as a push does; null if the driver has no storage. */
  push: ((repository: string, tag: string) => Promise<string>) | null;
}

const simulated = async (): Promise<RegistrySubject> => {
  return { ...(await simulatedSubject(createSimulatedRegistryDriver)()), push: null };
};

const distribution = async (): Promise<RegistrySubject> => {
  const host = await registryTestHost();
  return {
    ...adoptingSubject(host),
    push: async (repository, tag) =>
      host.storage.image(repository, tag, [await host.storage.layer(repository, `layer of ${repository}`)]),
  };
};

contract('simulated', simulated);
describe.skipIf(!requires('docker-registry'))(skipReason('docker-registry') ?? 'on this host', () => {
  contract('distribution', distribution);
});

function contract(name: string, make: () => Promise<RegistrySubject>): void {
  describe(`registry driver ${name}`, () => {
    const signal = new AbortController().signal;
    const refuseHold: RequestHold = async () => null;
    let subject: RegistrySubject;
    let driver: RegistryDriver;
    const push = async (repository: string, tag = 'v1') => (await subject.push?.(repository, tag)) ?? null;
    const contentsOf = async (prefix: string) =>
      (await driver.collect(refuseHold, signal))?.find((each) => each.prefix === prefix);

    beforeAll(async () => {
      subject = await make();
      driver = subject.driver;
      await driver.start();
      await driver.configure(testHosting);
    });
    afterAll(async () => subject.cleanUp());

    it('is healthy, and reports its status and address', () => {
      expect(driver.status()).toMatchObject({ driver: driver.name, real: driver.real, healthy: true });
      expect(driver.status().detail).not.toBe('');
      expect(driver.address).toMatch(/^127\.0\.0\.1:\d+$/);
    });

    it('sends clients to the token server of the last configuration', async () => {
      const realm = async () =>
        (await fetch(`http://${driver.address}/v2/`)).headers.get('www-authenticate')?.split('"')[1];
      await driver.configure(testHosting);
      if (driver.real) expect(await realm()).toBe(testHosting.realm);
      await driver.configure({ ...testHosting, realm: 'http://127.0.0.1:9/other' });
      if (driver.real) expect(await realm()).toBe('http://127.0.0.1:9/other');
      await driver.configure(testHosting);
      if (driver.real) expect(await realm()).toBe(testHosting.realm);
    });

    it('returns the contents of a registry, or null if it is simulated', async () => {
      const digest = await push('there-1/team/app');
      const found = await contentsOf('there-1');
      if (!driver.real) return expect(await driver.collect(refuseHold, signal)).toBeNull();
      expect(found!.repositories).toMatchObject([
        { name: 'team/app', manifests: [{ digest }], tags: [{ name: 'v1', digest }] },
      ]);
      expect(found!.blobs.size).toBe(2);
    });

    it('removes parts of a registry and whole registries, also if they do not exist', async () => {
      const digest = await push('parts-1/a');
      await push('parts-1/b');
      await push('other-2/a');
      const remove = (repository: string, of: string | null, tag: string | null) =>
        driver.removeContents({ prefix: 'parts-1', repository, digest: of, tag }, signal);
      for (let i = 0; i < 2; i += 1) {
        await remove('a', digest ?? `sha256:${'0'.repeat(64)}`, 'v1');
        await remove('b', null, null);
        await remove('none', null, null);
      }
      if (driver.real) {
        expect((await contentsOf('parts-1'))!.repositories).toMatchObject([
          { name: 'a', manifests: [{ digest }], tags: [] },
        ]);
      }
      for (let i = 0; i < 2; i += 1) await driver.remove('parts-1', signal);
      expect(await driver.list()).not.toContain('parts-1');
      if (driver.real) expect((await contentsOf('other-2'))!.repositories).toHaveLength(1);
    });

    it('moves a registry to quarantine, after which the prefix can be used again', async () => {
      await push('aside-1/a');
      await driver.quarantine('aside-1');
      await driver.quarantine('aside-1');
      expect(await driver.list()).not.toContain('aside-1');
      await push('aside-1/a');
      if (driver.real) expect(await driver.list()).toContain('aside-1');
    });

    it('keeps its registries after a crash of its process', async () => {
      await push('kept-1/a');
      driver = await subject.crash();
      await driver.start();
      await driver.configure(testHosting);
      expect(driver.status()).toMatchObject({ healthy: true });
      if (driver.real) expect(await driver.list()).toContain('kept-1');
    });

    it('changes nothing if the signal is aborted', async () => {
      await push('alive-1/a');
      await expect(driver.remove('alive-1', AbortSignal.abort())).rejects.toMatchObject({ retryable: true });
      const part = { prefix: 'alive-1', repository: 'a', digest: null, tag: null };
      await expect(driver.removeContents(part, AbortSignal.abort())).rejects.toMatchObject({ retryable: true });
      if (driver.real) expect((await contentsOf('alive-1'))!.repositories).toHaveLength(1);
    });
  });
}
