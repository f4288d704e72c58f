import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { newFolders } from '../test-host.ts';
import { repairFor } from './repairs.ts';
import { targetOf } from './target.ts';

it('logs a repair that fails, so that the client gets the response of distribution', async () => {
  const layout = await newFolders();
  const folder = join(layout.repository('app-1', 'a'), '_layers');
  await mkdir(folder, { recursive: true });
  // Fails with ELOOP.
  await symlink('sha256', join(folder, 'sha256'));
  const log = vi.spyOn(console, 'error').mockImplementation(() => {});
  onTestFinished(() => log.mockRestore());
  expect(await repairFor(layout, targetOf('/v2/app-1/a/manifests/v1')!)()).toBe('sound');
  expect(log).toHaveBeenCalledWith(expect.objectContaining({ code: 'ELOOP' }));
});
