/** Files that something else removes or damages while NFS-Ganesha runs, or before a start. */
import { readdirSync, renameSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import { until } from '../../../test/until.ts';
import type { DesiredFileShare } from '../file-share.ts';
import { fileShare as share } from '../test-desired.ts';
import type { GaneshaDriver } from './driver.ts';
import { layoutOf } from './layout.ts';
import { type TestHost, testHost } from './test-host.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const parts = ['nfs-ganesha', 'libnfs-utils', 'xfsprogs', 'root'] as const;

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'removed files of NFS-Ganesha', () => {
  const signal = new AbortController().signal;
  let host: TestHost;
  let driver: GaneshaDriver;
  const layout = () => layoutOf(host.dataDir);
  const applied = async (desired = share()) => {
    await driver.apply(desired, signal);
    return { ...desired, settledGib: desired.sizeGib };
  };
  const isServed = ({ id }: DesiredFileShare) =>
    host.nfs('nfs-ls', id).then(
      () => true,
      () => false,
    );
  const restart = async () => {
    await driver.stop();
    driver = host.driver();
    await driver.start();
  };

  beforeEach(async () => {
    host = await testHost();
    driver = host.driver();
    await driver.start();
  });
  afterEach(() => driver.stop().finally(host.cleanUp));

  it('do not prevent changes when they are the log', async () => {
    await applied();
    rmSync(join(layout().ganesha, 'ganesha.log'));
    expect(await isServed(await applied())).toBe(true);
  });

  it('are written again when they are its configuration and it ends', async () => {
    const one = await applied();
    const folder = join(layout().runtime, 'configuration');
    for (const name of readdirSync(folder)) rmSync(join(folder, name));
    process.kill(host.pid(), 'SIGKILL');
    await until(() => isServed(one), 30, 'the share');
  });

  it('are found when they are a spec, and written by an apply with the same number of the export', async () => {
    const [one, other] = [await applied(), await applied()];
    rmSync(layout().spec(one.id));
    expect(await driver.findDamaged!()).toEqual([one.id]);
    await applied(one);
    expect(await driver.findDamaged!()).toEqual([]);
    rmSync(layout().specs, { recursive: true });
    expect(new Set(await driver.findDamaged!())).toEqual(new Set([one.id, other.id]));
    for (const each of [one, other]) await applied(each);
    expect(await driver.findDamaged!()).toEqual([]);
    truncateSync(layout().spec(one.id), 10);
    await restart();
    expect([await isServed(one), await isServed(other)]).toEqual([false, true]);
    expect(await driver.findDamaged!()).toEqual([one.id]);
    await applied(one);
    expect(await isServed(one)).toBe(true);
    expect(await driver.findDamaged!()).toEqual([]);
  });

  it('are found when they are an image that returns', async () => {
    const one = await applied();
    await driver.stop();
    renameSync(layout().image(one.id), `${layout().image(one.id)}.away`);
    driver = host.driver();
    await driver.start();
    expect(await driver.findDamaged!()).toEqual([one.id]);
    await expect(applied(one)).rejects.toThrow(`the data of ${one.id} is missing`);
    renameSync(`${layout().image(one.id)}.away`, layout().image(one.id));
    await applied(one);
    expect(await isServed(one)).toBe(true);
    expect(await driver.findDamaged!()).toEqual([]);
  });
});
