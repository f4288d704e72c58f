/** The contract of volume drivers (driver.ts, volume.ts), tested with each of them. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../test/requires.ts';
import { cephTestHost, needed as neededForCeph } from './ceph/test-host.ts';
import { folder, type Place, xfs } from './disk/test-host.ts';
import { createSimulatedVolumeDriver } from './simulated/volume.ts';
import { snapshot, volume } from './test-desired.ts';
import { simulatedSubject, type Subject } from './test-subject.ts';
import type { DesiredVolume, VolumeDriver } from './volume.ts';

const disk = (place: () => Promise<Place>) => async () => {
  const host = await place();
  return { driver: host.driver(), crash: async () => host.driver(), cleanUp: host.cleanUp };
};

contract('simulated', simulatedSubject(createSimulatedVolumeDriver));
contract('disk', disk(folder));
describe.skipIf(!requires('xfsprogs', 'root'))(skipReason('xfsprogs', 'root') ?? 'on this host', () => {
  contract('disk with reflinks', disk(xfs));
});
describe.skipIf(!requires(...neededForCeph))(skipReason(...neededForCeph) ?? 'on a cluster', () => {
  contract('ceph', ceph);
});

async function ceph(): Promise<Subject<VolumeDriver>> {
  const host = await cephTestHost({ filesystem: false, osds: 1 });
  const drivers: VolumeDriver[] = [];
  const driver = () => {
    drivers.push(host.driver());
    return drivers.at(-1)!;
  };
  return {
    driver: driver(),
    crash: async () => driver(),
    async cleanUp() {
      await Promise.all(drivers.map((each) => each.stop()));
      await host.cleanUp();
    },
  };
}

function contract(name: string, make: () => Promise<Subject<VolumeDriver>>): void {
  describe(`volume driver ${name}`, () => {
    const signal = new AbortController().signal;
    let subject: Subject<VolumeDriver>;
    let driver: VolumeDriver;
    const made = async (changes: Partial<DesiredVolume> = {}) => {
      const desired = volume(changes);
      await driver.apply(desired, signal);
      return desired;
    };
    const madeSnapshot = async (volumeId: string) => {
      const desired = snapshot(volumeId);
      await driver.snapshots.apply(desired, signal);
      return desired;
    };

    beforeAll(async () => {
      subject = await make();
      driver = subject.driver;
      await driver.start();
    });
    afterAll(async () => {
      await driver.stop();
      await subject.cleanUp();
    });

    it('is healthy and reports its status', () => {
      expect(driver.status()).toMatchObject({ driver: driver.name, real: driver.real, healthy: true });
      expect(driver.status().detail).not.toBe('');
    });

    it('creates once', async () => {
      const desired = volume();
      const first = await driver.apply(desired, signal);
      expect(first).toEqual({ copying: false, sizeGib: 1 });
      expect(await driver.apply(desired, signal)).toEqual(first);
      expect(await driver.list()).toContain(desired.id);
      const copy = snapshot(desired.id);
      for (const _ of [1, 2]) expect(await driver.snapshots.apply(copy, signal)).toEqual({ copying: false });
      expect(await driver.snapshots.list()).toContain(copy.id);
      expect(await driver.list()).not.toContain(copy.id);
    });

    it('grows and never shrinks', async () => {
      const desired = await made();
      expect(await driver.apply({ ...desired, sizeGib: 3, settledGib: 1 }, signal)).toMatchObject({ sizeGib: 3 });
      const smaller = await driver.apply({ ...desired, sizeGib: 2, settledGib: 2 }, signal);
      expect(smaller).toMatchObject({ sizeGib: 3 });
    });

    it('creates from a snapshot, and reverts to one without shrinking the volume', async () => {
      const desired = await made();
      const from = await madeSnapshot(desired.id);
      const copy = await driver.apply(volume({ source: from.id }), signal);
      expect(copy).toMatchObject({ copying: false, sizeGib: 1 });
      await driver.apply({ ...desired, sizeGib: 2 }, signal);
      const reverting = { ...desired, sizeGib: 2, settledGib: 2, revertTo: from.id };
      for (const _ of [1, 2])
        expect(await driver.apply(reverting, signal)).toMatchObject({ copying: false, sizeGib: 2 });
      const settled = await driver.apply({ ...reverting, revertTo: null }, signal);
      expect(settled).toMatchObject({ sizeGib: 2 });
    });

    it('removes, also unknown ids, and nothing else', async () => {
      const [desired, other] = [await made(), await made()];
      const [one, two] = [await madeSnapshot(other.id), await madeSnapshot(other.id)];
      await driver.remove(desired.id, signal);
      await driver.remove(desired.id, signal);
      await driver.snapshots.remove(one.id, signal);
      await driver.snapshots.remove(randomUUID(), signal);
      expect(await driver.list()).not.toContain(desired.id);
      expect(await driver.list()).toContain(other.id);
      expect(await driver.snapshots.list()).not.toContain(one.id);
      expect(await driver.snapshots.apply(two, signal)).toEqual({ copying: false });
    });

    it('quarantines, and then the id is free again', async () => {
      const desired = await made();
      const copy = await madeSnapshot(desired.id);
      for (const _ of [1, 2]) {
        await driver.snapshots.quarantine(copy.id);
        await driver.quarantine(desired.id);
        expect(await driver.list()).not.toContain(desired.id);
        expect(await driver.snapshots.list()).not.toContain(copy.id);
        await driver.apply(desired, signal);
        await driver.snapshots.apply(copy, signal);
        expect(await driver.list()).toContain(desired.id);
        expect(await driver.snapshots.list()).toContain(copy.id);
      }
    });

    it('handles calls for many ids at once', async () => {
      const many = Array.from({ length: 12 }, () => volume());
      await Promise.all(many.map((each) => driver.apply(each, signal)));
      const copies = many.map(({ id }) => snapshot(id));
      await Promise.all(copies.map((each) => driver.snapshots.apply(each, signal)));
      expect(await driver.snapshots.list()).toEqual(expect.arrayContaining(copies.map(({ id }) => id)));
      await Promise.all(copies.map(({ id }) => driver.snapshots.remove(id, signal)));
      await Promise.all(many.map(({ id }) => driver.remove(id, signal)));
      expect((await driver.list()).filter((id) => many.some((each) => each.id === id))).toEqual([]);
    });

    it('converges after a crash of its process', async () => {
      const [kept, removed] = [await made({ sizeGib: 2 }), await made()];
      const copy = await madeSnapshot(kept.id);
      driver = await subject.crash();
      await driver.start();
      await driver.apply(kept, signal);
      await driver.snapshots.apply(copy, signal);
      expect(await driver.apply(kept, signal)).toMatchObject({ sizeGib: 2 });
      expect(await driver.snapshots.apply(copy, signal)).toEqual({ copying: false });
      await driver.remove(removed.id, signal);
      expect(await driver.list()).toContain(kept.id);
      expect(await driver.list()).not.toContain(removed.id);
    });

    it('does nothing for an aborted call', async () => {
      const [desired, copy] = [volume(), snapshot((await made()).id)];
      await expect(driver.apply(desired, AbortSignal.abort())).rejects.toMatchObject({ retryable: true });
      await expect(driver.snapshots.apply(copy, AbortSignal.abort())).rejects.toMatchObject({ retryable: true });
      await expect(driver.remove(copy.volumeId, AbortSignal.abort())).rejects.toMatchObject({ retryable: true });
      expect(await driver.list()).not.toContain(desired.id);
      expect(await driver.list()).toContain(copy.volumeId);
      expect(await driver.snapshots.list()).not.toContain(copy.id);
    });
  });
}
