/** Contents of volumes and snapshots, also after a crash or on a full disk. */
import { execFileSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import { snapshot, volume } from '../test-desired.ts';
import type { DesiredVolume, VolumeDriver } from '../volume.ts';
import { hasVolumes } from './layout.ts';
import { folder, type Place, read, write, xfs } from './test-host.ts';

const GIB = 1024 ** 3;
const signal = new AbortController().signal;
const blocksOf = (path: string) => statSync(path).blocks * 512;

onPlace('a plain folder', folder, true);
const skipXfs = skipReason('xfsprogs', 'root');
describe.skipIf(!requires('xfsprogs', 'root'))(skipXfs ?? 'with reflinks', () => {
  onPlace('XFS', xfs, false);
});

function onPlace(name: string, make: () => Promise<Place>, copies: boolean): void {
  describe(`volumes on ${name}`, () => {
    let place: Place;
    let driver: VolumeDriver;
    beforeAll(async () => {
      place = await make();
      driver = place.driver();
      await driver.start();
    });
    afterAll(async () => {
      await driver.stop();
      await place.cleanUp();
    });

    const made = async (changes: Partial<DesiredVolume> = {}) => {
      const desired = volume(changes);
      await driver.apply(desired, signal);
      return { ...desired, path: place.volume(desired.id) };
    };
    const snapshotOf = async (volumeId: string) => {
      const id = randomUUID();
      await driver.snapshots.apply(snapshot(volumeId, { id }), signal);
      return id;
    };

    it('reports how it creates snapshots', () => {
      const { detail } = driver.status();
      expect(detail).toMatch(copies ? /snapshots are full copies \(on XFS or Btrfs: / : /snapshots are reflinks$/);
    });

    it('are full copies or reflinks as before when the disk was full at the start', async () => {
      if (copies) return;
      const { id, path } = await made();
      await write(path, 0, 'data');
      const filler = join(place.dataDir, 'filler');
      const later = place.driver();
      for (let flag = 'wx'; ; flag = 'a') {
        try {
          writeFileSync(filler, Buffer.alloc(4096), { flag });
        } catch {
          break;
        }
      }
      await later.start().finally(() => rm(filler));
      expect(later.status().detail).toContain('full copies');
      await later.snapshots.apply(snapshot(id), signal);
      expect(later.status().detail).toMatch(/snapshots are reflinks$/);
      await later.stop();
    });

    it('start as zeros that take no space', async () => {
      const { path } = await made({ sizeGib: 5000 });
      expect(statSync(path).size).toBe(5000 * GIB);
      expect(blocksOf(path)).toBe(0);
      expect(await read(path, 4999 * GIB, 3)).toBe('\0\0\0');
      expect(statSync(path).mode & 0o077).toBe(0);
    });

    it('get the snapshot contents back by a revert, which does not change the snapshot', async () => {
      const { path, ...desired } = await made({ sizeGib: 2 });
      await write(path, 0, 'before');
      await write(path, GIB + 4096, 'in the middle');
      const id = await snapshotOf(desired.id);
      await write(path, 0, 'after!');
      await write(path, 2 * GIB - 5, 'end');
      expect(await read(place.snapshot(id), 0, 6)).toBe('before');
      await driver.apply({ ...desired, settledGib: 2, revertTo: id }, signal);
      expect(await read(path, 0, 6)).toBe('before');
      expect(await read(path, GIB + 4096, 13)).toBe('in the middle');
      expect(await read(path, 2 * GIB - 5, 3)).toBe('\0\0\0');
      await write(path, 0, 'again!');
      expect(await read(place.snapshot(id), 0, 6)).toBe('before');
    });

    it('keep their size when they are reverted to a smaller snapshot', async () => {
      const { path, ...desired } = await made();
      await write(path, 10, 'small');
      const id = await snapshotOf(desired.id);
      await driver.apply({ ...desired, sizeGib: 3, settledGib: 1 }, signal);
      await write(path, 2 * GIB, 'grown');
      await driver.apply({ ...desired, sizeGib: 3, settledGib: 3, revertTo: id }, signal);
      expect(statSync(path).size).toBe(3 * GIB);
      expect(await read(path, 10, 5)).toBe('small');
      expect(await read(path, 2 * GIB, 5)).toBe('\0\0\0\0\0');
    });

    it('start with the contents of a snapshot and are independent afterwards', async () => {
      const origin = await made();
      await write(origin.path, 0, 'origin');
      const source = await snapshotOf(origin.id);
      const copy = await made({ source });
      expect(await read(copy.path, 0, 6)).toBe('origin');
      await write(copy.path, 0, 'copied');
      await driver.remove(origin.id, signal);
      await driver.snapshots.remove(source, signal);
      expect(await read(copy.path, 0, 6)).toBe('copied');
      // The source applies only at creation.
      await driver.apply({ ...volume({ id: copy.id, source }), settledGib: 1 }, signal);
      expect(await read(copy.path, 0, 6)).toBe('copied');
    });

    it('keep holes in snapshots', async () => {
      const { path, id } = await made({ sizeGib: 100 });
      await write(path, 50 * GIB, randomBytes(1024 ** 2));
      const snapshot = place.snapshot(await snapshotOf(id));
      expect(statSync(snapshot).size).toBe(100 * GIB);
      expect(blocksOf(snapshot)).toBeLessThan(2 * 1024 ** 2);
    });

    it('that are lost are never recreated', async () => {
      const { path, ...desired } = await made();
      const id = await snapshotOf(desired.id);
      await write(path, 0, 'precious');
      await rm(place.snapshot(id));
      const lost = driver.snapshots.apply(snapshot(desired.id, { id, settled: true }), signal);
      await expect(lost).rejects.toMatchObject({
        retryable: false,
        customerMessage: expect.stringContaining('snapshot'),
      });
      expect(existsSync(place.snapshot(id))).toBe(false);
      truncateSync(path, 100);
      const settled = { ...desired, settledGib: 1 };
      await expect(driver.apply(settled, signal)).rejects.toMatchObject({ retryable: false });
      expect(statSync(path).size).toBe(100);
      await rm(path);
      await expect(driver.apply(settled, signal)).rejects.toMatchObject({ retryable: false });
      expect(existsSync(path)).toBe(false);
      const nothing = driver.snapshots.apply(snapshot(desired.id), signal);
      await expect(nothing).rejects.toMatchObject({
        retryable: true,
        customerMessage: expect.stringContaining('volume'),
      });
    });

    it('are missing without their folder, which a sweep creates again', async () => {
      const { path } = await made();
      const images = dirname(path);
      await rename(images, `${images}.away`);
      expect(await driver.list()).toEqual([]);
      const { id } = await made();
      expect(await driver.list()).toEqual([id]);
      await rm(images, { recursive: true });
      await rename(`${images}.away`, images);
    });

    it('are not taken for missing while their filesystem is not mounted', async () => {
      if (copies) return;
      const { id } = await made();
      const image = join(dirname(place.dataDir), 'image');
      execFileSync('umount', ['-l', place.dataDir]);
      try {
        await expect(driver.list()).rejects.toThrow('mount its filesystem again');
        await expect(driver.snapshots.list()).rejects.toThrow('mount its filesystem again');
        await expect(made()).rejects.toThrow('mount its filesystem again');
        expect(readdirSync(place.dataDir)).toEqual([]);
      } finally {
        execFileSync('mount', ['-o', 'loop', image, place.dataDir]);
      }
      expect(await driver.list()).toContain(id);
    });

    it('keep their contents in quarantine', async () => {
      const { path, id } = await made();
      await write(path, 0, 'kept');
      await driver.quarantine(id);
      await made({ id });
      await driver.quarantine(id);
      const aside = join(dirname(dirname(path)), 'quarantine');
      const kept = readdirSync(aside).filter((each) => each.includes(id));
      expect(kept).toHaveLength(2);
      expect(await read(join(aside, `${id}.raw`), 0, 4)).toBe('kept');
    });

    it('refuse sizes that the filesystem does not support, and invalid ids', async () => {
      for (const sizeGib of [8_000_000_000, 9_000_000]) {
        const desired = volume({ sizeGib });
        const outcome = await driver.apply(desired, signal).then(
          () => 'done',
          (error: { retryable: boolean; customerMessage: string }) => error,
        );
        if (outcome === 'done') await driver.remove(desired.id, signal);
        else expect(outcome).toMatchObject({ retryable: false, customerMessage: expect.stringContaining('size') });
        expect(await driver.list()).not.toContain(desired.id);
      }
      await expect(driver.apply(volume({ id: '../../etc/passwd' }), signal)).rejects.toMatchObject({
        retryable: false,
      });
      await expect(driver.remove('a', signal)).rejects.toMatchObject({ retryable: false });
    });

    it('delete unfinished files of a crash at the next start', async () => {
      const { path, id } = await made();
      await write(path, 0, 'whole');
      writeFileSync(`${path}.unfinished`, 'half');
      writeFileSync(`${place.snapshot(randomUUID())}.unfinished`, 'half');
      driver = place.driver();
      await driver.start();
      expect(await driver.list()).toContain(id);
      expect(readdirSync(dirname(path)).filter((each) => each.includes('unfinished'))).toEqual([]);
      expect(readdirSync(dirname(place.snapshot(id))).filter((each) => each.includes('unfinished'))).toEqual([]);
      expect(await read(path, 0, 5)).toBe('whole');
      expect(await hasVolumes(place.dataDir)).toBe(true);
      expect(await hasVolumes(join(place.dataDir, 'elsewhere'))).toBe(false);
    });
  });
}

describe('a long copy', () => {
  let place: Place;
  let driver: VolumeDriver;
  const BIG = 100 * 1024 ** 2;
  beforeAll(async () => {
    place = await folder();
    driver = place.driver({ copyWaitMs: 1 });
    await driver.start();
  });
  afterAll(async () => {
    await driver.stop();
    await place.cleanUp();
  });
  const big = async () => {
    const desired = volume();
    await driver.apply(desired, signal);
    await write(place.volume(desired.id), 0, randomBytes(BIG));
    return desired;
  };
  /** Reading only the data takes a tenth of the time. The rest is zeros: neither file has space for more than the data. */
  const expectCopied = (volumeId: string, snapshotId: string) => {
    const files = [place.volume(volumeId), place.snapshot(snapshotId)];
    execFileSync('cmp', ['-n', String(BIG), ...files]);
    expect(new Set(files.map((file) => statSync(file).size)).size).toBe(1);
    for (const file of files) expect(blocksOf(file)).toBeLessThan(BIG + 1024 ** 2);
  };
  const settled = async (ask: () => Promise<{ copying: boolean }>) => {
    const giveUp = Date.now() + 60_000;
    while ((await ask()).copying && Date.now() < giveUp) await sleep(20);
  };

  it('returns early and continues in the background while other volumes are served', async () => {
    const { id: volumeId } = await big();
    const id = randomUUID();
    const ask = () => driver.snapshots.apply(snapshot(volumeId, { id }), signal);
    expect(await ask()).toMatchObject({ copying: true });
    expect(await driver.snapshots.list()).not.toContain(id);
    const other = volume();
    expect(await driver.apply(other, signal)).toMatchObject({ copying: false });
    const small = randomUUID();
    await settled(() => driver.snapshots.apply(snapshot(other.id, { id: small }), signal));
    expect(await driver.snapshots.list()).toContain(small);
    await settled(ask);
    expectCopied(volumeId, id);
  });

  it('reports how much of a copy is done', async () => {
    const { id: volumeId } = await big();
    const id = randomUUID();
    const seen: { doneBytes: number; totalBytes: number }[] = [];
    await settled(async () => {
      const observed = await driver.snapshots.apply(snapshot(volumeId, { id }), signal);
      if (observed.copying && observed.progress) seen.push(observed.progress);
      return observed;
    });
    expect(seen.length).toBeGreaterThan(0);
    const done = seen.map(({ doneBytes }) => doneBytes);
    expect(done).toEqual([...done].sort((a, b) => a - b));
    for (const { doneBytes, totalBytes } of seen) {
      expect(totalBytes).toBe(statSync(place.volume(volumeId)).blocks * 512);
      expect(doneBytes).toBeLessThanOrEqual(totalBytes);
    }
  });

  it('reverts once for repeated calls, and again for a later revert', async () => {
    const desired = await big();
    const path = place.volume(desired.id);
    const before = await read(path, 0, 64);
    const id = randomUUID();
    await settled(() => driver.snapshots.apply(snapshot(desired.id, { id }), signal));
    const reverting = { ...desired, settledGib: 1, revertTo: id };
    for (const _ of [1, 2]) {
      await write(path, 0, 'changed since');
      const { ino } = await stat(path);
      await settled(() => driver.apply(reverting, signal));
      expect(await read(path, 0, 64)).toBe(before);
      expect((await stat(path)).ino).not.toBe(ino);
      await driver.apply({ ...reverting, revertTo: null }, signal);
    }
  });

  it('ends when its snapshot is removed or the driver stops', async () => {
    const { id: volumeId } = await big();
    const [id, other] = [randomUUID(), randomUUID()];
    for (const each of [id, other]) await driver.snapshots.apply(snapshot(volumeId, { id: each }), signal);
    await driver.snapshots.remove(id, signal);
    await driver.stop();
    const folder = dirname(place.snapshot(id));
    const left = readdirSync(folder).filter((each) => each.includes(id) || each.includes('unfinished'));
    expect(left).toEqual([]);
    await settled(() => driver.snapshots.apply(snapshot(volumeId, { id: other }), signal));
    expectCopied(volumeId, other);
  });
});

describe.skipIf(!requires('xfsprogs', 'root'))(skipXfs ?? 'a full disk', () => {
  it('fails the copy as a shortage and keeps existing data', async () => {
    const place = await xfs();
    const driver = place.driver({ withoutReflinks: true });
    await driver.start();
    const desired = volume();
    await driver.apply(desired, signal);
    await write(place.volume(desired.id), 0, randomBytes(350 * 1024 ** 2));
    const id = randomUUID();
    const ask = () => driver.snapshots.apply(snapshot(desired.id, { id }), signal);
    const outcome = async () => {
      while ((await ask()).copying) await sleep(20);
    };
    await expect(outcome()).rejects.toMatchObject({
      shortage: true,
      customerMessage: expect.stringContaining('space'),
    });
    expect(readdirSync(dirname(place.snapshot(id)))).toEqual([]);
    expect(statSync(place.volume(desired.id)).size).toBe(GIB);
    await driver.stop();
    await place.cleanUp();
  });
});

describe.skipIf(!requires('qemu-utils'))(skipReason('qemu-utils') ?? 'in a virtual machine', () => {
  it('an image works as a disk: QEMU reads a pattern after a revert', async () => {
    const place = await folder();
    const driver = place.driver();
    await driver.start();
    const desired = volume();
    await driver.apply(desired, signal);
    const path = place.volume(desired.id);
    const qemu = (command: string) => execFileSync('qemu-io', ['-f', 'raw', '-c', command, path], { encoding: 'utf8' });
    qemu('write -P 0x5a 64k 1M');
    const id = randomUUID();
    await driver.snapshots.apply(snapshot(desired.id, { id }), signal);
    qemu('write -P 0xa5 64k 1M');
    await driver.apply({ ...desired, settledGib: 1, revertTo: id }, signal);
    expect(qemu('read -P 0x5a 64k 1M')).not.toContain('verification failed');
    expect(() => qemu('read -P 0xa5 64k 1M')).toThrow();
    const info = execFileSync('qemu-img', ['info', '--output=json', '-f', 'raw', path], { encoding: 'utf8' });
    expect(JSON.parse(info)).toMatchObject({ 'virtual-size': GIB });
    await driver.stop();
    await place.cleanUp();
  });
});
