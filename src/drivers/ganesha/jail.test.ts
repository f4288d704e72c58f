import { lstatSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { requires } from '../../../test/requires.ts';
import { createJail } from './jail.ts';
import { layoutOf } from './layout.ts';

it.skipIf(!requires('root'))('a key of names that cannot be read is never replaced', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudyard-jail-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const layout = layoutOf(dataDir);
  mkdirSync(layout.root, { recursive: true });
  const key = join(layout.root, 'names.key');
  // Fails with ELOOP, as every file fails while the process has no descriptor left.
  symlinkSync(key, key);
  const jail = createJail(layout);
  onTestFinished(() => jail.close());
  await expect(jail.prepare()).rejects.toThrow('ELOOP');
  expect(lstatSync(key).isSymbolicLink()).toBe(true);
});
