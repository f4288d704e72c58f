/** A real Ganesha with NFS clients. ../file-share.contract.test.ts tests the contract of all drivers. */
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import { liveProcess } from '../../platform/running-processes.ts';
import type { DesiredFileShare } from '../file-share.ts';
import { fileShare as share } from '../test-desired.ts';
import type { GaneshaDriver } from './driver.ts';
import { freePort } from '../../../test/free-port.ts';
import { type TestHost, testHost } from './test-host.ts';

const runs = requires('nfs-ganesha', 'libnfs-utils', 'xfsprogs', 'root');
const skip = skipReason('nfs-ganesha', 'libnfs-utils', 'xfsprogs', 'root');
const MIB = 1024 ** 2;

describe.skipIf(!runs)(skip ?? 'file shares on NFS-Ganesha', () => {
  const signal = new AbortController().signal;
  let host: TestHost;
  let driver: GaneshaDriver;
  let big: string;
  const applied = async (changes: Partial<DesiredFileShare> = {}) => {
    const desired = share(changes);
    await driver.apply(desired, signal);
    return desired;
  };

  beforeAll(async () => {
    host = await testHost();
    driver = host.driver();
    await driver.start();
    big = join(host.dataDir, 'big');
    writeFileSync(big, randomBytes(32 * MIB));
  }, 30_000);
  afterAll(async () => {
    await driver.stop().finally(host.cleanUp);
    expect(host.loopDevices()).toEqual([]);
  }, 60_000);

  it('writes and reads back', async () => {
    const { id } = await applied();
    await host.upload(big, id, '/big');
    expect(statSync(host.inside(id, 'big')).size).toBe(32 * MIB);
    execFileSync('cmp', [big, host.inside(id, 'big')]);
    writeFileSync(host.inside(id, 'note'), 'hello');
    expect(await host.nfs('nfs-cat', id, '/note')).toBe('hello');
    expect(await host.nfs('nfs-ls', id)).toContain('big');
  });

  it('serves NFSv4 under the same path', async () => {
    const { id } = await applied();
    writeFileSync(host.inside(id, 'note'), 'hello');
    expect(execFileSync('nfs-cat', [host.url(id, '/note', 4)], { encoding: 'utf8' })).toBe('hello');
  });

  it('refuses writes under a read-only rule as soon as apply has resolved', async () => {
    const desired = await applied();
    await host.upload(big, desired.id, '/first');
    await driver.apply({ ...desired, access: [{ network: '127.0.0.0/8', mode: 'ro' }] }, signal);
    await expect(host.upload(big, desired.id, '/second')).rejects.toThrow(/ROFS/);
    expect(await host.nfs('nfs-ls', desired.id)).toContain('first');
  });

  it.each([3, 4] as const)('refuses mounts without a matching rule (NFSv%i)', async (version) => {
    const list = (id: string) => execFileSync('nfs-ls', [host.url(id, '', version)], { stdio: 'pipe' });
    const desired = await applied({ access: [] });
    expect(() => list(desired.id)).toThrow(/ACCES|NOENT/);
    await driver.apply({ ...desired, access: [{ network: '127.0.0.2', mode: 'rw' }] }, signal);
    expect(() => list(desired.id)).toThrow(/ACCES|NOENT/);
    await driver.apply({ ...desired, access: [{ network: '0.0.0.0/0', mode: 'ro' }] }, signal);
    expect(() => list(desired.id)).not.toThrow();
    await driver.apply({ ...desired, access: [] }, signal);
    expect(() => list(desired.id)).toThrow(/ACCES|NOENT/);
  });

  it('applies the most specific rule, in any order', async () => {
    const rules: DesiredFileShare['access'] = [
      { network: '0.0.0.0/0', mode: 'rw' },
      { network: '127.0.0.1/32', mode: 'ro' },
      { network: '127.0.0.0/8', mode: 'rw' },
    ];
    const desired = await applied({ access: rules });
    await expect(host.upload(big, desired.id, '/x')).rejects.toThrow(/ROFS/);
    await driver.apply({ ...desired, access: rules.filter(({ mode }) => mode === 'rw') }, signal);
    await host.upload(big, desired.id, '/x');
  });

  it('squashes root only if configured', async () => {
    const desired = await applied();
    await host.upload(big, desired.id, '/squashed');
    expect(statSync(host.inside(desired.id, 'squashed'))).toMatchObject({ uid: 65_534, gid: 65_534 });
    await driver.apply({ ...desired, rootSquash: false }, signal);
    await host.upload(big, desired.id, '/mine');
    expect(statSync(host.inside(desired.id, 'mine'))).toMatchObject({ uid: 0, gid: 0 });
  });

  it('enforces its size and grows while it is mounted', async () => {
    const desired = await applied();
    await host.upload(big, desired.id, '/first');
    execFileSync('fallocate', ['-l', '880M', host.inside(desired.id, 'filler')]);
    await expect(host.upload(big, desired.id, '/second')).rejects.toThrow(/NOSPC|Failed to write/);
    const mountedBefore = host.loopDevices().length;
    await driver.apply({ ...desired, sizeGib: 2 }, signal);
    expect(host.loopDevices()).toHaveLength(mountedBefore);
    await host.upload(big, desired.id, '/third');
    execFileSync('cmp', [big, host.inside(desired.id, 'third')]);
  });

  it.each(['file', 'loop device'])('finishes growing after a crash that only grew the %s', async (reached) => {
    const desired = await applied();
    truncateSync(join(host.dataDir, `file-shares/images/${desired.id}.xfs`), 2 * 1024 * MIB);
    const loop =
      host
        .loopDevices()
        .find((line) => line.includes(desired.id))
        ?.split(':')[0] ?? '';
    if (reached === 'loop device') execFileSync('losetup', ['-c', loop]);
    await driver.apply({ ...desired, sizeGib: 2 }, signal);
    expect(execFileSync('xfs_info', [host.inside(desired.id)], { encoding: 'utf8' })).toMatch(/data .*blocks=524288,/);
  });

  it('changes to other shares do not disturb a client that reads a file', async () => {
    const { id } = await applied();
    for (const part of [1, 2, 3, 4]) await host.upload(big, id, `/${part}`);
    execFileSync('sh', ['-c', 'cat 1 2 3 4 > all'], { cwd: host.inside(id) });
    const reader = spawn('nfs-cat', [host.url(id, '/all')]);
    const sockets = () =>
      readdirSync(`/proc/${reader.pid}/fd`)
        .map((fd) => readlinkSync(`/proc/${reader.pid}/fd/${fd}`))
        .filter((target) => target.startsWith('socket:'));
    reader.stdout.pause();
    await new Promise((resolve) => reader.stdout.once('readable', resolve));
    const [pid, connected] = [host.pid(), sockets()];
    for (let change = 0; change < 10; change += 1) {
      const other = await applied();
      await driver.remove(other.id, signal);
    }
    expect([host.pid(), sockets()]).toEqual([pid, connected]);
    let bytes = 0;
    reader.stdout.on('data', (data: Buffer) => (bytes += data.length));
    expect(await new Promise((resolve) => reader.once('close', resolve))).toBe(0);
    expect(bytes).toBe(128 * MIB);
  });

  it('removes export, mount, loop device and data, even while a client reads', async () => {
    const { id } = await applied();
    await host.upload(big, id, '/big');
    const reader = spawn('nfs-cat', [host.url(id, '/big', 4)]);
    await new Promise((resolve) => reader.stdout.once('readable', resolve));
    await driver.remove(id, signal);
    reader.kill('SIGKILL');
    expect(host.loopDevices().filter((line) => line.includes(id))).toEqual([]);
    expect(existsSync(host.inside(id))).toBe(false);
    expect(existsSync(join(host.dataDir, `file-shares/images/${id}.xfs`))).toBe(false);
    await expect(host.nfs('nfs-ls', id)).rejects.toThrow();
  });

  it('keeps the data of quarantined shares', async () => {
    const { id } = await applied();
    await driver.quarantine(id);
    expect(existsSync(join(host.dataDir, `file-shares/quarantine/${id}.xfs`))).toBe(true);
    await expect(host.nfs('nfs-ls', id)).rejects.toThrow();
  });

  it('refuses invalid ids and networks and changes nothing', async () => {
    const before = host.reloads();
    const bad = [
      share({ id: '../../etc' }),
      share({ access: [{ network: '127.0.0.1; } EXPORT {', mode: 'rw' }] }),
      share({ access: [{ network: 'fd00::/110', mode: 'rw' }] }),
    ];
    for (const desired of bad) await expect(driver.apply(desired, signal)).rejects.toMatchObject({ retryable: false });
    expect(host.reloads()).toBe(before);
  });

  it('does not reload for a share that it serves', async () => {
    const desired = await applied();
    const before = host.reloads();
    await driver.apply(desired, signal);
    expect(host.reloads()).toBe(before);
  });

  it('does not replace lost data with an empty share', async () => {
    const [desired, other] = [await applied(), await applied()];
    const image = join(host.dataDir, `file-shares/images/${desired.id}.xfs`);
    await driver.stop();
    renameSync(image, `${image}.away`);
    driver = host.driver();
    await driver.start();
    expect(driver.status().healthy).toBe(false);
    await expect(driver.apply(desired, signal)).rejects.toMatchObject({ retryable: false });
    expect(await host.nfs('nfs-ls', other.id)).toBe('');
    renameSync(`${image}.away`, image);
    await driver.apply(desired, signal);
    expect(driver.status().healthy).toBe(true);
    await host.upload(big, desired.id, '/big');
  });

  it('restores every export after Ganesha was killed', async () => {
    const desired = await applied();
    writeFileSync(host.inside(desired.id, 'note'), 'hello');
    const killed = host.pid();
    process.kill(killed, 'SIGKILL');
    const other = await applied();
    expect(host.pid()).not.toBe(killed);
    expect(await host.nfs('nfs-cat', desired.id, '/note')).toBe('hello');
    expect(await host.nfs('nfs-ls', other.id)).toBe('');
  });

  it('is adopted by the next process and serves meanwhile', async () => {
    const { id } = await applied();
    writeFileSync(host.inside(id, 'note'), 'hello');
    const pid = host.pid();
    await driver.release();
    expect(await host.nfs('nfs-cat', id, '/note')).toBe('hello');
    driver = host.driver();
    await driver.start();
    expect(host.pid()).toBe(pid);
    expect(driver.status().healthy).toBe(true);
    expect(await host.nfs('nfs-cat', id, '/note')).toBe('hello');
  });

  it('restores everything after a stop, as after a boot', async () => {
    const { id } = await applied();
    await host.upload(big, id, '/big');
    const pid = host.pid();
    await driver.stop();
    expect(liveProcess(pid)).toBeNull();
    expect(host.loopDevices()).toEqual([]);
    driver = host.driver();
    await driver.start();
    execFileSync('cmp', [big, host.inside(id, 'big')]);
    expect(await host.nfs('nfs-ls', id)).toContain('big');
  });

  it.each(['bound', 'mounted'])('frees a loop device that a killed process left %s', async (reached) => {
    const { id } = await applied();
    await driver.stop();
    const device = execFileSync('losetup', ['--find', '--show', join(host.dataDir, `file-shares/images/${id}.xfs`)]);
    if (reached === 'mounted') {
      mkdirSync(host.inside(id), { recursive: true });
      execFileSync('mount', ['-o', 'nosuid,nodev', device.toString().trim(), host.inside(id)]);
    }
    driver = host.driver();
    await driver.start();
    await driver.stop();
    expect(host.loopDevices()).toEqual([]);
    driver = host.driver();
    await driver.start();
  });

  it('keeps file handles of clients valid over a stop', async () => {
    const [first, { id }] = [await applied(), await applied()];
    const device = () =>
      host
        .loopDevices()
        .find((line) => line.includes(id))
        ?.split(':')[0];
    await host.upload(big, id, '/1');
    execFileSync('sh', ['-c', 'cat 1 1 1 1 > all'], { cwd: host.inside(id) });
    const reader = spawn('nfs-cat', [host.url(id, '/all')]);
    reader.stdout.pause();
    await new Promise((resolve) => reader.stdout.once('readable', resolve));
    const before = device();
    await driver.remove(first.id, signal);
    await driver.stop();
    driver = host.driver();
    await driver.start();
    expect(device()).toBe(before);
    let bytes = 0;
    reader.stdout.on('data', (data: Buffer) => (bytes += data.length));
    expect(await new Promise((resolve) => reader.once('close', resolve))).toBe(0);
    expect(bytes).toBe(128 * MIB);
  });

  it('creates 50 shares at a time with few reloads', { timeout: 300_000 }, async () => {
    // A reload waits 100 ms for shares in preparation: on a busy machine, which prepares few shares in that time, the time
    // that they take is the limit. Without waiting there would be 50.
    const began = performance.now();
    const before = host.reloads();
    const many = await Promise.all(Array.from({ length: 50 }, () => applied()));
    expect(host.reloads() - before).toBeLessThan(Math.min(45, Math.max(25, (performance.now() - began) / 100)));
    for (const { id } of many) expect(await host.nfs('nfs-ls', id)).toBe('');
    await Promise.all(many.map(({ id }) => driver.remove(id, signal)));
  });
});

describe.skipIf(!runs)(skip ?? 'NFS-Ganesha and the rest of the host', () => {
  it('survives a kill of the driver process, and the next process adopts it', { timeout: 120_000 }, async () => {
    const host = await testHost();
    const id = randomUUID();
    const desired = { id, sizeGib: 1, rootSquash: true, access: [{ network: '127.0.0.1', mode: 'rw' }] };
    const script = `
      const { testDriver } = await import(${JSON.stringify(join(import.meta.dirname, 'test-host.ts'))});
      const driver = testDriver(${JSON.stringify({ dataDir: host.dataDir, port: host.port, mountPort: host.mountPort })});
      await driver.start();
      await driver.apply(${JSON.stringify(desired)}, new AbortController().signal);
      console.log('applied');
      setInterval(() => undefined, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const driver = host.driver();
    try {
      await new Promise((resolve, reject) => {
        child.stdout.once('data', resolve);
        child.once('exit', () => reject(new Error('the driver process ended')));
      });
      const pid = host.pid();
      child.kill('SIGKILL');
      expect(await host.nfs('nfs-ls', id)).toBe('');
      await driver.start();
      expect(host.pid()).toBe(pid);
      expect(await driver.list()).toEqual([id]);
      await driver.remove(id, new AbortController().signal);
    } finally {
      child.kill('SIGKILL');
      await driver.stop().finally(host.cleanUp);
    }
    expect(host.loopDevices()).toEqual([]);
  });

  it('creates the first shares of a host at the same time', async () => {
    const host = await testHost();
    const driver = host.driver();
    const ids = Array.from({ length: 4 }, () => randomUUID()).sort();
    try {
      await driver.start();
      const { signal } = new AbortController();
      const settings = { sizeGib: 1, settledGib: null, rootSquash: true, access: [] };
      await Promise.all(ids.map((id) => driver.apply({ id, ...settings }, signal)));
      expect((await driver.list()).sort()).toEqual(ids);
      // The mode that mkfs gives the root folder of each share.
      for (const id of ids) expect(statSync(host.inside(id)).mode & 0o777).toBe(0o777);
    } finally {
      await driver.stop().finally(host.cleanUp);
    }
  });

  it('reports the port that another program uses', async () => {
    const host = await testHost();
    const driver = host.driver();
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(host.port, '127.0.0.1', resolve));
    try {
      await expect(driver.start()).rejects.toMatchObject({
        message: expect.stringContaining(`port ${host.port} on 127.0.0.1 is in use`),
        customerMessage: `another program of the host uses port ${host.port} of the file server`,
        maxRetrySeconds: 5,
      });
    } finally {
      await new Promise((resolve) => other.close(resolve));
      await driver.stop().finally(host.cleanUp);
    }
  });

  it('restarts a Ganesha that runs with other settings', { timeout: 120_000 }, async () => {
    const host = await testHost();
    const [first, second] = [host.driver(), host.driver(undefined, { mountPort: await freePort() })];
    try {
      await first.start();
      const pid = host.pid();
      await first.release();
      await second.start();
      expect(host.pid()).not.toBe(pid);
      expect(liveProcess(pid)).toBeNull();
    } finally {
      await second.stop().finally(host.cleanUp);
    }
  });
});
