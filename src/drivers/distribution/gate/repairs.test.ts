import { mkdir, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { hexOf, type Layout } from '../layout.ts';
import { newFolders } from '../test-host.ts';
import { testStorage } from '../test-storage.ts';
import { createRepairs } from './repairs.ts';
import { targetOf } from './target.ts';

const target = targetOf('/v2/app-1/a/manifests/v1')!;
let layout: Layout;

beforeEach(async () => {
  layout = await newFolders();
});

it('logs a repair that fails, so that the client gets the response of distribution', async () => {
  const folder = join(layout.repository('app-1', 'a'), '_layers');
  await mkdir(folder, { recursive: true });
  // Fails with ELOOP.
  await symlink('sha256', join(folder, 'sha256'));
  const log = vi.spyOn(console, 'error').mockImplementation(() => {});
  onTestFinished(() => log.mockRestore());
  expect(await createRepairs(layout)(target)()).toBe('sound');
  expect(log).toHaveBeenCalledWith(expect.objectContaining({ code: 'ELOOP' }));
});

it('scans a repository once for concurrent requests, and again after a pause or a repair', async () => {
  const storage = testStorage(layout);
  const digest = await storage.layer('app-1/a', 'layer');
  const link = join(layout.repository('app-1', 'a'), '_layers/sha256', hexOf(digest), 'link');
  const cutLink = async () => {
    await writeFile(link, '');
    await utimes(link, new Date(0), new Date(0));
  };
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const repair = createRepairs(layout)(target);
  await cutLink();
  expect(await Promise.all([repair(), repair(), repair()])).toEqual(['repaired', 'repaired', 'repaired']);
  vi.runOnlyPendingTimers();
  expect(await repair()).toBe('sound');
  await cutLink();
  expect(await repair()).toBe('sound');
  vi.runOnlyPendingTimers();
  expect(await repair()).toBe('repaired');
});
