/** The check of a mount: only a mount that fails or does not respond is mounted again. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import { mountWorks } from './mount.ts';

const folder = mkdtempSync(join(tmpdir(), 'cloudyard-mount-'));
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

const name = skipReason('util-linux') ?? 'a check that is killed or does not start says nothing about the mount';
it.skipIf(!requires('util-linux'))(name, async () => {
  expect(await mountWorks(folder, 5)).toBe(true);
  expect(await mountWorks(join(folder, 'absent'), 5)).toBe(false);
  vi.stubEnv('PATH', folder);
  const results = [];
  for (const script of ['exec /bin/sleep 60', 'kill -9 $$', 'exit 1']) {
    writeFileSync(join(folder, 'stat'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    results.push(await mountWorks(folder, 0.3));
  }
  rmSync(join(folder, 'stat'));
  results.push(await mountWorks(folder, 5));
  expect(results).toEqual([false, null, false, null]);
});
