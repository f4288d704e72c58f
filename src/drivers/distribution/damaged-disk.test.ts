/** A disk on which a file of registries is damaged, so that every access to it fails with EUCLEAN. */
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import { registryTestHost, testHosting } from './test-host.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const parts = ['docker-registry', 'e2fsprogs', 'root'] as const;

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'a damaged file on the disk of registries', () => {
  let host: Awaited<ReturnType<typeof registryTestHost>>;
  let driver: ReturnType<typeof host.driver>;
  let disk: string;

  /** Mounts a disk with the files of the data directory, on which the inode of a file is cleared. */
  const mountDamaged = (file: string) => {
    const debugfs = (request: string) =>
      execFileSync('debugfs', ['-w', '-R', request, disk], { encoding: 'utf8', stdio: 'pipe' });
    execFileSync('mkfs.ext4', ['-q', '-d', host.dataDir, disk, '32M'], { stdio: 'pipe' });
    const [, inode] = /Inode: (\d+)/.exec(debugfs(`stat "${file.slice(host.dataDir.length)}"`))!;
    debugfs(`clri <${inode}>`);
    execFileSync('mount', ['-o', 'loop,errors=continue', disk, host.dataDir]);
  };

  beforeEach(async () => {
    host = await registryTestHost();
    disk = `${host.dataDir}.img`;
    driver = host.driver();
  });
  afterEach(async () => {
    await driver.stop();
    execFileSync('umount', ['-l', host.dataDir]);
    rmSync(disk);
    await host.cleanUp();
  });

  it.each([
    ['a blob', (layer: string) => host.layout.data(layer)],
    ['the links of a repository', () => `${host.layout.repositories}/app-1/a/_layers/sha256`],
  ])('does not keep distribution from starting: %s', async (_of, fileOf) => {
    const file = fileOf(await host.storage.layer('app-1/a', 'layer'));
    mountDamaged(file);
    await driver.start();
    await driver.configure(testHosting);
    expect((await fetch(`http://127.0.0.1:${host.port}/v2/`)).status).toBe(401);
    await driver.collect(async () => null, new AbortController().signal);
    expect(driver.status()).toMatchObject({ healthy: true, detail: expect.stringContaining(`cannot read ${file}`) });
  });
});
