/** Contents of volumes in a Ceph pool, as virtual machines read them; what happens when parts are away; locks. */
import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import { groupRecords } from '../nfs-groups/records.ts';
import { snapshot, volume } from '../test-desired.ts';
import type { DesiredVolume, VolumeDriver } from '../volume.ts';
import type { CephBridge } from './bridge.ts';
import { managerCommand } from './commands.ts';
import { imagesOf, type Images } from './images.ts';
import { type CephTestHost, cephTestHost, needed } from './test-host.ts';

const GIB = 1024 ** 3;
const signal = new AbortController().signal;
const name = (id: string) => `snapshot.${id}`;

describe.skipIf(!requires(...needed))(skipReason(...needed) ?? 'volumes in a Ceph pool', () => {
  let host: CephTestHost;
  let driver: VolumeDriver;
  /** The pool as the operator sees it. */
  let images: Images;

  beforeAll(async () => {
    host = await cephTestHost();
    images = imagesOf(host.cluster.admin, host.cluster.pool);
    driver = host.driver();
    await driver.start();
  });
  afterAll(async () => {
    await driver.stop();
    await host.cleanUp();
  });

  const made = async (changes: Partial<DesiredVolume> = {}) => {
    const desired = volume(changes);
    await driver.apply(desired, signal);
    return desired;
  };
  const snapshotOf = async (volumeId: string) => {
    const id = randomUUID();
    await driver.snapshots.apply(snapshot(volumeId, { id }), signal);
    return id;
  };
  const write = (id: string, pattern: number, at = '0') => host.qemu(id, `write -P ${pattern} ${at} 64k`);
  const holds = async (image: string, pattern: number, at = '0') =>
    !(await host.qemu(image, `read -P ${pattern} ${at} 64k`)).includes('verification failed');
  /** Retried as the worker does. */
  const untilDone = async <T>(work: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!(error as { retryable?: boolean }).retryable) throw error;
        await sleep(200);
      }
    }
  };
  const untilCopied = async (desired: DesiredVolume, by = driver) => {
    const seen = [];
    for (;;) {
      const observed = await untilDone(() => by.apply(desired, signal));
      if (!observed.copying) return { observed, seen };
      seen.push(observed.progress ?? null);
      await sleep(20);
    }
  };

  it('have the contents of a snapshot after a revert, and zeros where they have grown since', async () => {
    const desired = await made();
    await write(desired.id, 1);
    const first = await snapshotOf(desired.id);
    await driver.apply({ ...desired, sizeGib: 2, settledGib: 1 }, signal);
    await write(desired.id, 2);
    await write(desired.id, 2, '1500M');
    const second = await snapshotOf(desired.id);
    await untilCopied({ ...desired, sizeGib: 2, settledGib: 2, revertTo: first });
    expect(await holds(desired.id, 1)).toBe(true);
    expect(await holds(desired.id, 0, '1500M')).toBe(true);
    expect(await holds(`${desired.id}@${name(second)}`, 2)).toBe(true);
    expect(await images.find({ name: desired.id })).toMatchObject({ sizeBytes: 2 * GIB });
  });

  it('made from a snapshot keep its contents when the snapshot and its volume are removed', async () => {
    const origin = await made();
    await write(origin.id, 3);
    const source = await snapshotOf(origin.id);
    await write(origin.id, 4);
    const clone = await made({ source });
    expect(await holds(clone.id, 3)).toBe(true);
    await write(clone.id, 5, '1M');
    expect(await holds(origin.id, 0, '1M')).toBe(true);
    await driver.snapshots.remove(source, signal);
    await driver.remove(origin.id, signal);
    expect(await driver.list()).not.toContain(origin.id);
    expect(await holds(clone.id, 3)).toBe(true);
    expect((await images.trash()).map((each) => each.name)).toContain(origin.id);
    const again = await snapshotOf(clone.id);
    const grandchild = await made({ source: again });
    expect(await holds(grandchild.id, 5, '1M')).toBe(true);
    await driver.snapshots.remove(again, signal);
    for (const { id } of [clone, grandchild]) await driver.remove(id, signal);
    // The data of all three is deleted with the last of them.
    await expect.poll(() => images.trash()).toEqual([]);
  });

  it('keep their data while another client deletes volumes', async () => {
    await expect.poll(() => images.trashLock.acquire('another', 30)).toBe(true);
    await driver.remove((await made()).id, signal);
    await sleep(1000);
    expect(await images.trash()).toHaveLength(1);
    await images.trashLock.release('another');
    await driver.remove((await made()).id, signal);
    await expect.poll(() => images.trash()).toEqual([]);
  });

  it('share no data with their ancestors when these are many', async () => {
    const bridge = host.bridge();
    const short = host.driver({ bridge, maxAncestors: 1, copyWaitMs: 0 });
    await short.start();
    const origin = await made({ sizeGib: 4 });
    await host.qemu(origin.id, 'write -P 6 0 64M');
    const child = await made({ sizeGib: 4, source: await snapshotOf(origin.id) });
    const source = await snapshotOf(child.id);
    const desired = volume({ sizeGib: 4, source });
    const { seen } = await untilCopied(desired, short);
    expect(seen.length).toBeGreaterThan(0);
    const progress = seen.filter((each) => each !== null);
    expect(progress.map((each) => each.doneBytes)).toEqual(
      progress.map((each) => each.doneBytes).sort((a, b) => a - b),
    );
    expect(await images.find({ name: desired.id })).toMatchObject({ parent: null });
    expect(await images.find({ name: child.id })).toMatchObject({ parent: { pool: host.cluster.pool } });
    expect(await holds(desired.id, 6, '63M')).toBe(true);
    await short.stop();
  });

  it('that are missing or too small are not created again', async () => {
    const desired = await made();
    const source = await snapshotOf(desired.id);
    await driver.snapshots.remove(source, signal);
    await images.moveToTrash(desired.id);
    const lost = { retryable: false, customerMessage: expect.stringContaining('missing') };
    await expect(driver.apply({ ...desired, settledGib: 1 }, signal)).rejects.toMatchObject(lost);
    await expect(
      driver.snapshots.apply(snapshot(desired.id, { id: source, settled: true }), signal),
    ).rejects.toMatchObject(lost);
    await expect(driver.apply({ ...desired, revertTo: source }, signal)).rejects.toMatchObject(lost);
    await expect(driver.apply(volume({ source }), signal)).rejects.toMatchObject(lost);
    await images.create(desired.id, GIB / 2);
    await expect(driver.apply({ ...desired, settledGib: 1 }, signal)).rejects.toMatchObject(lost);
    expect(await images.find({ name: desired.id })).toMatchObject({ sizeBytes: GIB / 2 });
  });

  it('do not contain what an interrupted creation left', async () => {
    const desired = volume({ sizeGib: 2 });
    const left = `${desired.id}.unfinished`;
    await images.create(left, GIB);
    await write(left, 7);
    expect(await driver.list()).not.toContain(desired.id);
    // As the client of the dead process does, this one still uses it. So it cannot be removed, but it is out of the way.
    const user = spawn('qemu-io', ['-f', 'raw', `rbd:${host.cluster.pool}/${left}:id=admin:conf=${host.cluster.conf}`]);
    const isOpen = new Promise((resolve) => user.stdout.once('data', resolve));
    user.stdin.write('length\n');
    await isOpen;
    await driver.apply(desired, signal);
    expect(await holds(desired.id, 0)).toBe(true);
    expect(await images.list()).not.toContain(left);
    expect((await images.trash()).map((each) => each.name)).toContain(left);
    user.stdin.end();
  });

  it('whose rename was interrupted at any step have one name', async () => {
    const { conf, pool } = host.cluster;
    const copy = (from: string, to: string) =>
      promisify(execFile)('rados', [
        '-c',
        conf,
        '-n',
        'client.admin',
        '-p',
        pool,
        'cp',
        `rbd_id.${from}`,
        `rbd_id.${to}`,
      ]);
    const [first, last, removed] = [volume(), await made(), volume()];
    for (const { id } of [first, removed]) {
      await images.create(`${id}.unfinished`, GIB);
      await copy(`${id}.unfinished`, id);
    }
    await copy(last.id, `${last.id}.unfinished`);
    await write(first.id, 13);
    for (const each of [first, last]) await driver.apply(each, signal);
    await driver.remove(removed.id, signal);
    expect(await holds(first.id, 13)).toBe(true);
    const names = await images.list();
    expect(names).toEqual(expect.arrayContaining([first.id, last.id]));
    expect(names.filter((each) => each.endsWith('.unfinished') || each === removed.id)).toEqual([]);
    for (const { id } of [first, last, removed]) expect(await images.find({ name: `${id}.unfinished` })).toBeNull();
    // No object of a name is left that would refuse an image of that name.
    for (const name of [`${first.id}.unfinished`, `${last.id}.unfinished`, removed.id]) {
      await images.create(name, GIB);
      await images.moveToTrash(name);
    }
  });

  it('in quarantine keep their contents and their snapshots', async () => {
    const desired = await made();
    await write(desired.id, 8);
    const snapshot = await snapshotOf(desired.id);
    await driver.quarantine(desired.id);
    await driver.snapshots.quarantine(snapshot);
    const kept = (await images.list()).find((each) => each.startsWith('quarantine.') && each.endsWith(desired.id))!;
    expect(await holds(kept, 8)).toBe(true);
    expect([...(await images.find({ name: kept }))!.snapshots]).toEqual([
      expect.stringMatching(new RegExp(`^quarantine\\..*${snapshot}$`)),
    ]);
  });

  it('of an impossible size, or without an id, are refused permanently', async () => {
    const refused = { retryable: false, customerMessage: expect.any(String) };
    const desired = volume({ sizeGib: 8_000_000_000 });
    await expect(driver.apply(desired, signal)).rejects.toMatchObject(refused);
    expect(await driver.list()).not.toContain(desired.id);
    await expect(driver.apply(volume({ id: 'a/b' }), signal)).rejects.toMatchObject(refused);
    await expect(driver.remove('a', signal)).rejects.toMatchObject(refused);
  });

  it('report the space of the pool', async () => {
    expect(driver.status()).toMatchObject({ healthy: true, space: { totalBytes: expect.any(Number) } });
    const strict = host.driver({ diskReserve: 100 });
    await strict.start();
    expect(strict.status()).toMatchObject({ healthy: false, detail: expect.stringContaining('reserve') });
    await strict.stop();
  });

  it('are not served to a user without permissions', async () => {
    await host.cluster.addUser('stranger', { mon: 'allow r' });
    const refused = host.driver({ bridge: host.bridge({ user: 'stranger' }) });
    await refused.start();
    await expect(refused.apply(volume(), signal)).rejects.toMatchObject({
      ...{ retryable: true, shortage: true, customerMessage: expect.stringContaining('permissions') },
    });
    await refused.stop();
    const unknown = host.driver({ bridge: host.bridge({ user: 'nobody' }) });
    await expect(unknown.start()).rejects.toMatchObject({ message: expect.stringContaining('cannot connect') });
    await unknown.stop();
  });

  it('have a connection of its own after it was blocklisted', async () => {
    const bridge = host.bridge();
    await bridge.start();
    const { address } = bridge.client()!;
    const call = () => bridge.call('image.list', { pool: host.cluster.pool });
    await host.cluster.command({ prefix: 'osd blocklist', blocklistop: 'add', addr: address, expire: 60.5 });
    await expect.poll(() => call().catch((error: unknown) => error)).toMatchObject({ retryable: true });
    await untilDone(call);
    expect(bridge.client()!.address).not.toBe(address);
    await bridge.stop();
  });

  it('have locks of NFS groups, without which nobody writes a record', async () => {
    const bridges = [host.bridge({ user: 'admin' }), host.bridge({ user: 'admin' })];
    await Promise.all(bridges.map((bridge) => bridge.start()));
    const place = { regionId: 1, pool: host.cluster.pool, filesystem: 'none' };
    const [mine, theirs] = bridges.map((bridge) => groupRecords({ bridge, ...place }));
    const record = (name: string) => ({ host: name, serving: true, shares: {}, sizes: {} });
    const lost = { retryable: true, message: expect.stringContaining('busy') };
    expect(await mine!.lock('g', 'a', { seconds: 60, host: 'h1' })).toBe(true);
    expect(await mine!.lock('g', 'a', { seconds: 60, host: 'h1' })).toBe(true);
    expect(await theirs!.lock('g', 'b', { seconds: 60, host: 'h2' })).toBe(false);
    expect(await theirs!.holder('g')).toEqual({ host: 'h1', cookie: 'a' });
    expect(await mine!.holder('none')).toBeNull();
    await mine!.write('g', 'a', record('h1'));
    await expect(theirs!.write('g', 'b', record('h2'))).rejects.toMatchObject(lost);

    await theirs!.breakLock('g', 'a');
    await expect(mine!.write('g', 'a', record('late'))).rejects.toMatchObject(lost);
    expect(await theirs!.lock('g', 'b', { seconds: 1, host: 'h2' })).toBe(true);
    await expect(mine!.write('g', 'a', record('late'))).rejects.toMatchObject(lost);
    await theirs!.write('g', 'b', record('h2'));
    // The second lock expires by itself.
    await expect.poll(() => theirs!.holder('g')).toBeNull();
    await expect(theirs!.write('g', 'b', record('late'))).rejects.toMatchObject(lost);
    expect([...(await mine!.servers('g'))]).toEqual([
      ['a', record('h1')],
      ['b', record('h2')],
    ]);
    expect(await mine!.lock('g', 'a', { seconds: 60, host: 'h1' })).toBe(true);
    await mine!.unlock('g', 'a');
    expect(await theirs!.holder('g')).toBeNull();
    await Promise.all(bridges.map((bridge) => bridge.stop()));
  });

  describe('when something is away', () => {
    /** Short limits, so that the test is short. */
    const impatient = (): CephBridge =>
      host.bridge({ options: { rados_mon_op_timeout: '2', rados_osd_op_timeout: '3', client_mount_timeout: '3' } });

    it('are all made once if the process of the calls is killed again and again', async () => {
      const bridge = impatient();
      const fragile = host.driver({ bridge });
      await fragile.start();
      const origin = await made();
      await write(origin.id, 9);
      const source = await snapshotOf(origin.id);
      const many = Array.from({ length: 24 }, (_, i) => volume({ source: i % 2 ? source : null }));
      let failures = 0;
      let pending = true;
      const all = Promise.all(
        many.map((desired) =>
          untilDone(() =>
            fragile.apply(desired, signal).catch((error: unknown) => {
              failures += 1;
              throw error;
            }),
          ),
        ),
      ).finally(() => (pending = false));
      for (let kills = 0; kills < 3 && pending; ) {
        await sleep(150);
        const pid = bridge.client() && bridge.pid();
        if (!pid) continue;
        process.kill(pid, 'SIGKILL');
        kills += 1;
      }
      await all;
      expect(failures).toBeGreaterThan(0);
      expect(await fragile.list()).toEqual(expect.arrayContaining(many.map(({ id }) => id)));
      expect((await images.list()).filter((each) => each.endsWith('.unfinished'))).toEqual([]);
      for (const { id, source: from } of many) expect(await holds(id, from ? 9 : 0)).toBe(true);
      await fragile.stop();
    });

    it('survive a monitor that is away, and no call waits for it forever', async () => {
      const bridge = impatient();
      const patient = host.driver({ bridge, checkSeconds: 0.2 });
      await patient.start();
      const desired = await made();
      await write(desired.id, 10);
      await host.cluster.kill('mon.a');
      await expect(bridge.call('command', { target: 'mon', command: { prefix: 'df' } })).rejects.toMatchObject({
        retryable: true,
      });
      // Images are managed through the OSDs, which serve meanwhile.
      expect(await patient.apply({ ...desired, sizeGib: 2, settledGib: 1 }, signal)).toMatchObject({ sizeGib: 2 });
      const absent = host.driver({ bridge: impatient() });
      await expect(absent.start()).rejects.toMatchObject({ retryable: true });
      await absent.stop();
      host.cluster.start('mon.a');
      await host.cluster.ready();
      await untilDone(() => patient.apply(volume(), signal));
      expect(await holds(desired.id, 10)).toBe(true);
      await expect.poll(() => patient.status().healthy).toBe(true);
      await patient.stop();
    });

    it('keep their connection when a manager responds after the time limit of a command', async () => {
      const bridge = impatient();
      await bridge.start();
      const command = () => managerCommand(bridge, { prefix: 'rbd task list' });
      expect(await untilDone(command)).toEqual([]);
      const pid = bridge.pid();
      host.cluster.signal('mgr.x', 'SIGSTOP');
      const all = await Promise.allSettled(Array.from({ length: 12 }, command));
      expect(all).toEqual(
        all.map(() => ({ status: 'rejected', reason: expect.objectContaining({ retryable: true }) })),
      );
      expect(await imagesOf(bridge, host.cluster.pool).list()).toEqual(await images.list());
      host.cluster.signal('mgr.x', 'SIGCONT');
      await untilDone(command);
      await sleep(1000);
      expect(bridge.pid()).toBe(pid);
      await bridge.stop();
    });

    it('survive an OSD that is away', async () => {
      const desired = await made();
      await write(desired.id, 11);
      await host.cluster.kill('osd.0');
      const other = volume();
      await untilDone(() => driver.apply(other, signal));
      expect(await holds(desired.id, 11)).toBe(true);
      await write(desired.id, 12, '1M');
      host.cluster.start('osd.0');
      await host.cluster.ready();
      await host.cluster.kill('osd.1');
      expect(await holds(desired.id, 12, '1M')).toBe(true);
      host.cluster.start('osd.1');
      await host.cluster.ready();
    });
  });
});
