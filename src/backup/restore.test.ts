import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { migrations } from '../main/backups.ts';
import type { FileCopy, Manifest } from './format.ts';
import { checkBackup, requireEmptyDirectory, type RestoreOptions } from './restore.ts';

const attributes = { mode: 0o600, uid: 0, gid: 0, size: 0, mtimeMs: 0 };
const own: FileCopy[] = [
  { ...attributes, path: 'volumes' },
  { ...attributes, path: 'volumes/link', link: '/etc' },
  { ...attributes, path: 'volumes/link-of-another-name', blocks: [] },
];

interface Given {
  files?: FileCopy[];
  name?: string;
  keys?: Manifest['keys'];
}

function optionsFor({ files = [], name = 'regions.yaml', keys = null }: Given): RestoreOptions {
  const known = migrations();
  const manifest: Manifest = {
    ...{
      format: 1,
      id: '20261122T030000.000Z',
      createdAt: '2026-11-22T03:00:00.000Z',
      version: '1',
      reason: 'command',
    },
    ...{ schema: known.list[0]!, tables: [], sequences: [], keys },
    configuration: [{ name, text: '' }],
    files: [...own, ...files],
  };
  const source = { list: async () => [], manifest: async () => manifest, block: async () => Buffer.alloc(0) };
  const opener = { passphrase: undefined, ageIdentityFile: undefined };
  return { source, manifest, migrations: known, version: '1', dataDir: '/d', keyFile: '/d/keys', opener };
}

const check = (given: Given) => checkBackup(optionsFor(given));

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

it.each<[string, Partial<FileCopy>[]]>([
  [
    'through a link whose path has another encoding',
    [{ path: 'volumes/\u00e9', link: '/etc' }, { path: 'volumes/\u00c3\u00a9/a' }],
  ],
  ['with characters that are cut to bytes', [{ path: '\u012e\u012e\u012foutside' }]],
])('a backup that would write outside %s is refused', async (_, files) => {
  const all = files.map((file) => ({
    ...attributes,
    path: '',
    ...(file.link ? {} : { encoding: 'latin1' as const, blocks: [] }),
    ...file,
  }));
  await expect(check({ files: all })).rejects.toThrow('outside of the data directory');
});

it('a backup whose configuration would be written elsewhere is refused', async () => {
  await expect(check({ name: '../outside.yaml' })).rejects.toThrow('outside of the data directory');
});

describe.each(['secret.keys', join('data', 'secret.keys')])('the key file of the operator at %s', (name) => {
  const keys = { method: 'passphrase', data: '' } as const;
  let places: { dataDir: string; keyFile: string };
  beforeEach(() => {
    const folder = mkdtempSync(join(tmpdir(), 'cloudyard-restore-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    places = { dataDir: join(folder, 'data'), keyFile: join(folder, name) };
    mkdirSync(places.dataDir);
  });
  const requireEmpty = (given: Given) => requireEmptyDirectory({ ...optionsFor(given), ...places });
  const refusal = () => `the key file ${places.keyFile} exists; move it away before the restore`;

  it('is kept: only a backup with keys would replace it, and is refused', async () => {
    writeFileSync(places.keyFile, 'the only copy');
    await requireEmpty({});
    await expect(requireEmpty({ keys })).rejects.toThrow(refusal());
  });

  it('is kept if it is a link to a disk that is not mounted', async () => {
    symlinkSync('/absent/secret.keys', places.keyFile);
    await requireEmpty({});
    await expect(requireEmpty({ keys })).rejects.toThrow(refusal());
  });
});

it('a backup with a file in the place of the key file of the operator is refused', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudyard-restore-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const places = { dataDir, keyFile: join(dataDir, 'secret.keys') };
  writeFileSync(places.keyFile, 'the only copy');
  for (const path of ['secret.keys', 'secret.keys/below']) {
    const given = { ...optionsFor({ files: [{ ...attributes, path, blocks: [] }] }), ...places };
    await expect(requireEmptyDirectory(given)).rejects.toThrow('move it away before the restore');
  }
});
