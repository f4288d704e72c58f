/** Files and sockets that something else removes while registries are served, and a full disk at a start. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import { until } from '../../../test/until.ts';
import { liveProcess } from '../../platform/running-processes.ts';
import { runtimeFolder } from '../confined.ts';
import { makeFolders } from './layout.ts';
import { registryTestHost, testHosting } from './test-host.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const parts = ['docker-registry', 'root'] as const;

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'removed files of registries', () => {
  let host: Awaited<ReturnType<typeof registryTestHost>>;
  let driver: ReturnType<typeof host.driver>;
  const pidOf = (name: 'gate' | 'distribution') =>
    Number(readFileSync(join(host.layout.distribution, `${name}.pid`), 'utf8'));
  /** 401: distribution responds, through the gate. */
  const responds = () =>
    fetch(`http://127.0.0.1:${host.port}/v2/`).then(
      ({ status }) => status === 401,
      () => false,
    );
  const start = async () => {
    driver = host.driver();
    await driver.start();
    await driver.configure(testHosting);
  };

  beforeEach(async () => {
    host = await registryTestHost();
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16m,mode=755', 'tmpfs', host.dataDir]);
    await start();
  });
  afterEach(async () => {
    await driver.stop();
    execFileSync('umount', ['-l', host.dataDir]);
    await host.cleanUp();
  });

  it('lead to a restart of distribution when they are its socket', async () => {
    const pid = pidOf('distribution');
    rmSync(host.layout.socket);
    await until(() => !liveProcess(pid), 20, 'the end of distribution');
    await until(responds, 20, 'distribution');
  });

  it('are written again when they are the configurations, and the processes end', async () => {
    const pids = [pidOf('distribution'), pidOf('gate')];
    rmSync(runtimeFolder(host.layout.root), { recursive: true });
    for (const name of readdirSync(host.layout.distribution)) {
      if (name.endsWith('.json')) rmSync(join(host.layout.distribution, name));
    }
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    await until(responds, 30, 'the registries');
    expect(driver.status()).toMatchObject({ healthy: true });
  });

  it('are looked for without taking the folders from the gate', async () => {
    let isLooking = true;
    const looking = makeFolders(host.layout).finally(() => void (isLooking = false));
    const modes = new Set<number>();
    while (isLooking) {
      for (const folder of [host.layout.root, host.layout.marks]) modes.add(statSync(folder).mode & 0o777);
      await setImmediate();
    }
    await looking;
    expect(modes).toEqual(new Set([0o710, 0o750]));
  });

  it('are not needed to adopt the processes on a full disk', async () => {
    const pids = [pidOf('distribution'), pidOf('gate')];
    await driver.release();
    const filler = join(host.dataDir, 'filler');
    const { bavail, bsize } = statfsSync(host.dataDir);
    expect(() => writeFileSync(filler, Buffer.alloc(bavail * bsize + 1))).toThrow(/ENOSPC/);
    await start();
    expect([pidOf('distribution'), pidOf('gate')]).toEqual(pids);
    expect(driver.status()).toMatchObject({ healthy: true });
    expect(await responds()).toBe(true);
  });
});
