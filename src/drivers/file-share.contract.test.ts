/** The contract of file share drivers (driver.ts), tested with each of them. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../test/requires.ts';
import { labWorks } from '../../test/several-hosts/lab.ts';
import { createNfsRegion, GROUP } from '../../test/several-hosts/nfs-hosts.ts';
import type { FileShareDriver } from './file-share.ts';
import { testHost } from './ganesha/test-host.ts';
import { createSimulatedFileShareDriver } from './simulated/file-share.ts';
import { fileShare as share } from './test-desired.ts';
import { adoptingSubject, simulatedSubject, type Subject } from './test-subject.ts';

const simulated = simulatedSubject(() => createSimulatedFileShareDriver({ host: 'nfs.example' }));

const ganesha = (finding: { sizeEnforced: boolean }) => async () => {
  const host = await testHost();
  return adoptingSubject({ ...host, driver: () => host.driver(finding) });
};

/** One host; the place of each share is what the region's rows would have. */
const ceph = async (): Promise<Subject<FileShareDriver>> => {
  const region = await createNfsRegion({ hosts: 1 });
  await region.hosts[0]!.start();
  const exportIds = new Map<string, number>();
  const placed = (driver: FileShareDriver): FileShareDriver => ({
    ...driver,
    apply(desired, signal) {
      const exportId = exportIds.get(desired.id) ?? exportIds.size + 1;
      exportIds.set(desired.id, exportId);
      return driver.apply({ ...desired, export: { group: GROUP, exportId } }, signal);
    },
  });
  return {
    driver: placed(region.driver),
    crash: async () => placed(region.createDriver()),
    cleanUp: region.remove,
  };
};

const skipGanesha = skipReason('nfs-ganesha', 'xfsprogs', 'root');
const runGanesha = requires('nfs-ganesha', 'xfsprogs', 'root');

contract('simulated', simulated);
describe.skipIf(!runGanesha)(skipGanesha ?? 'on this host', () => {
  contract('ganesha', ganesha({ sizeEnforced: true }));
  contract('ganesha without loop devices', ganesha({ sizeEnforced: false }));
});

const cephParts = ['ceph', 'ceph-mds', 'nfs-ganesha', 'nfs-ganesha-ceph', 'iputils-arping', 'root'] as const;
describe.skipIf(!requires(...cephParts) || !labWorks())(
  skipReason(...cephParts) ?? 'in a region of several hosts',
  () => {
    contract('ceph', ceph);
  },
);

function contract(name: string, make: () => Promise<Subject<FileShareDriver>>): void {
  describe(`file share driver ${name}`, () => {
    const signal = new AbortController().signal;
    let subject: Subject<FileShareDriver>;
    let driver: FileShareDriver;

    beforeAll(async () => {
      subject = await make();
      driver = subject.driver;
      await driver.start();
    });
    afterAll(async () => subject.cleanUp());

    it('is healthy and reports its status', () => {
      expect(driver.status()).toMatchObject({ driver: driver.name, real: driver.real, healthy: true });
      expect(driver.status().detail).not.toBe('');
    });

    it('creates once', async () => {
      const desired = share();
      const first = await driver.apply(desired, signal);
      expect(first.connectionPoint).toMatch(new RegExp(`:/shares/${desired.id}$`));
      expect(first.sizeGib).toBe(1);
      expect(await driver.apply(desired, signal)).toEqual(first);
      expect(await driver.list()).toContain(desired.id);
    });

    it('changes its access', async () => {
      const desired = share();
      const first = await driver.apply(desired, signal);
      for (const next of [
        { ...desired, access: [] },
        { ...desired, access: [], rootSquash: false },
        { ...desired, access: [{ network: 'fd00::/64', mode: 'ro' as const }] },
      ]) {
        for (const _ of [1, 2]) expect(await driver.apply(next, signal)).toEqual(first);
      }
    });

    it('grows and never shrinks', async () => {
      const desired = share();
      await driver.apply(desired, signal);
      expect(await driver.apply({ ...desired, sizeGib: 3 }, signal)).toMatchObject({ sizeGib: 3 });
      expect(await driver.apply({ ...desired, sizeGib: 2 }, signal)).toMatchObject({ sizeGib: 3 });
    });

    it('reports the space of shares that have their own filesystem', async () => {
      const desired = share();
      await driver.apply(desired, signal);
      const usage = (await driver.usage()).get(desired.id);
      if (!['ganesha', 'ceph'].includes(name)) return expect(usage).toBeUndefined();
      expect(usage!.totalBytes).toBeLessThanOrEqual(1024 ** 3);
      expect(usage!.totalBytes).toBeGreaterThan(0.9 * 1024 ** 3);
      expect(usage!.usedBytes).toBeLessThan(usage!.totalBytes / 10);
      await driver.apply({ ...desired, sizeGib: 2 }, signal);
      expect((await driver.usage()).get(desired.id)!.totalBytes).toBeGreaterThan(1.9 * 1024 ** 3);
      await driver.remove(desired.id, signal);
      expect((await driver.usage()).has(desired.id)).toBe(false);
    });

    it('removes, also unknown ids', async () => {
      const [desired, other] = [share(), share()];
      await Promise.all([driver.apply(desired, signal), driver.apply(other, signal)]);
      await driver.remove(desired.id, signal);
      expect(await driver.list()).not.toContain(desired.id);
      await driver.remove(desired.id, signal);
      await driver.remove(randomUUID(), signal);
      expect(await driver.list()).toContain(other.id);
    });

    it('quarantines, and then the id is free again', async () => {
      const desired = share();
      await driver.apply(desired, signal);
      await driver.quarantine(desired.id);
      await driver.quarantine(desired.id);
      expect(await driver.list()).not.toContain(desired.id);
      await driver.apply(desired, signal);
      expect(await driver.list()).toContain(desired.id);
    });

    it('handles calls for many ids at once', async () => {
      const many = Array.from({ length: 8 }, () => share());
      await Promise.all(many.map((each) => driver.apply(each, signal)));
      expect(await driver.list()).toEqual(expect.arrayContaining(many.map(({ id }) => id)));
      await Promise.all(many.map(({ id }) => driver.remove(id, signal)));
      expect((await driver.list()).filter((id) => many.some((each) => each.id === id))).toEqual([]);
    });

    it('converges after a crash of its process', async () => {
      const [kept, removed] = [share({ sizeGib: 2 }), share()];
      await driver.apply(kept, signal);
      await driver.apply(removed, signal);
      driver = await subject.crash();
      await driver.start();
      for (const _ of [1, 2]) expect(await driver.apply(kept, signal)).toMatchObject({ sizeGib: 2 });
      await driver.remove(removed.id, signal);
      const ids = await driver.list();
      expect(ids).toContain(kept.id);
      expect(ids).not.toContain(removed.id);
    });

    it('does nothing for an aborted call', async () => {
      const desired = share();
      await expect(driver.apply(desired, AbortSignal.abort())).rejects.toMatchObject({ retryable: true });
      expect(await driver.list()).not.toContain(desired.id);
    });
  });
}
