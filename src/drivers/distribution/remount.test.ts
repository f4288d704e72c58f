import { rename, rm, writeFile } from 'node:fs/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import { requires } from '../../../test/requires.ts';
import { silentLogger, type Logger } from '../../platform/log.ts';
import type { CephMount } from '../ceph/mount.ts';
import { layoutOf } from './layout.ts';
import { registryTestHost, testHosting } from './test-host.ts';

it.skipIf(!requires('docker-registry'))(
  'registries start again after a remount, also if their first start fails',
  async () => {
    const host = await registryTestHost();
    let remounted = () => {};
    let isMounted = true;
    const ignore = async () => undefined;
    const mount: CephMount = { open: ignore, close: ignore, release: ignore, isMounted: () => isMounted };
    const failed = vi.fn<() => void>();
    const driver = host.driver({
      log: { ...silentLogger, error: failed } as unknown as Logger,
      shared: {
        replica: 'h1',
        mount({ onRemount }) {
          remounted = onRemount;
          return mount;
        },
      },
    });
    onTestFinished(async () => {
      await driver.stop();
      await host.cleanUp();
    });
    await driver.start();
    await driver.configure(testHosting);
    expect(driver.status()).toMatchObject({ healthy: true });
    isMounted = false;
    expect(driver.status()).toMatchObject({ healthy: false, detail: expect.stringContaining('CephFS is not mounted') });
    isMounted = true;

    // Nothing can be written to it.
    const { distribution } = layoutOf(host.dataDir, 'h1');
    await rename(distribution, `${distribution}.away`);
    await writeFile(distribution, '');
    remounted();
    await expect.poll(() => failed.mock.calls.length).toBeGreaterThan(0);
    expect(driver.status()).toMatchObject({ healthy: false, detail: expect.stringContaining('down') });
    await rm(distribution);
    await rename(`${distribution}.away`, distribution);
    await expect.poll(() => driver.status(), { timeout: 20_000 }).toMatchObject({ healthy: true });
    const { status } = await fetch(`http://127.0.0.1:${host.port}/v2/`);
    expect(status).toBe(401);
  },
);
