import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { withLayer } from '../../test/storage-layer.ts';
import { createDataDirectory } from './data-directory.ts';

vi.mock('node:fs', async (original) => (await import('../../test/storage-layer.ts')).layered(await original()));

it('the data directory is created with the folders above it; one that cannot be is named with its setting', () => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-data-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const dataDir = join(folder, 'a', 'b');
  for (const _ of ['first', 'again']) createDataDirectory(dataDir);
  expect(statSync(dataDir).isDirectory()).toBe(true);
  const file = join(folder, 'file');
  writeFileSync(file, '');
  for (const [path, reason] of [
    [file, 'a file is in its place'],
    [join(file, 'below'), 'a file is in the place of a parent folder'],
    [join(file, 'far', 'below'), 'a file is in the place of a parent folder'],
    ['/proc/cloudyard', 'ENOENT'],
    ['/proc/cloudyard/below', 'ENOENT'],
  ] as const) {
    expect(() => createDataDirectory(path)).toThrow(
      `the data directory ${path} cannot be created (${reason}); set CLOUDYARD_DATA_DIR to another one`,
    );
  }
});

it('the data directory is created while another process creates the folders above it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-data-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const dataDir = join(folder, 'a', 'b');
  const created = withLayer(
    (_operation, perform) => {
      try {
        return perform();
      } catch (error) {
        mkdirSync(join(folder, 'a'), { recursive: true });
        throw error;
      }
    },
    async () => createDataDirectory(dataDir),
  );
  await expect(created).resolves.toBeUndefined();
  expect(statSync(dataDir).isDirectory()).toBe(true);
});
