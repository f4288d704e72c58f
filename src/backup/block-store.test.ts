import { chownSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { requires } from '../../test/requires.ts';
import { openBackupDirectory } from './block-store.ts';

it.skipIf(!requires('root'))('what root writes belongs to the owner of the data directory', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudyard-blocks-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const account = 65_534;
  chownSync(dataDir, account, account);
  const store = await openBackupDirectory(join(dataDir, 'backups'));
  await store.putBlock(Buffer.from('rows'));
  const paths = readdirSync(dataDir, { recursive: true, encoding: 'utf8' });
  expect(paths).toContain('backups/blocks');
  const owners = paths.map((path) => [path, statSync(join(dataDir, path)).uid]);
  expect(owners).toEqual(paths.map((path) => [path, account]));
});
