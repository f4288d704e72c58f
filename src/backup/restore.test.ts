import { expect, it } from 'vitest';
import { migrations } from '../main/backups.ts';
import type { FileCopy, Manifest } from './format.ts';
import { checkBackup } from './restore.ts';

const attributes = { mode: 0o600, uid: 0, gid: 0, size: 0, mtimeMs: 0 };
const own: FileCopy[] = [
  { ...attributes, path: 'volumes' },
  { ...attributes, path: 'volumes/link', link: '/etc' },
  { ...attributes, path: 'volumes/link-of-another-name', blocks: [] },
];

function check({ files = [] as FileCopy[], name = 'regions.yaml' }): Promise<Buffer | null> {
  const known = migrations();
  const manifest: Manifest = {
    ...{
      format: 1,
      id: '20261122T030000.000Z',
      createdAt: '2026-11-22T03:00:00.000Z',
      version: '1',
      reason: 'command',
    },
    ...{ schema: known.list[0]!, tables: [], sequences: [], keys: null },
    configuration: [{ name, text: '' }],
    files: [...own, ...files],
  };
  const source = { list: async () => [], manifest: async () => manifest, block: async () => Buffer.alloc(0) };
  const opener = { passphrase: undefined, ageIdentityFile: undefined };
  return checkBackup({ source, manifest, migrations: known, version: '1', dataDir: '/d', keyFile: '/d/keys', opener });
}

it('a backup with files below the data directory and links to any place is accepted', async () => {
  expect(await check({})).toBeNull();
});

it.each(['../outside', '/etc/outside', 'volumes/../../outside', 'volumes//outside', 'volumes/link/a/outside'])(
  'a backup that would write to %s is refused',
  async (path) => {
    await expect(check({ files: [{ ...attributes, path, blocks: [] }] })).rejects.toThrow(
      `has a file ${JSON.stringify(path)} outside of the data directory`,
    );
  },
);

it('a backup whose configuration would be written elsewhere is refused', async () => {
  await expect(check({ name: '../outside.yaml' })).rejects.toThrow('outside of the data directory');
});
