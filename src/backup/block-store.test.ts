import { chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, it, onTestFinished } from 'vitest';
import { requires } from '../../test/requires.ts';
import { openBackupDirectory, unpackBackup } from './block-store.ts';
import { tarEntry } from './tar.ts';

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

it('pruning removes what a killed process left unfinished', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-blocks-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const store = await openBackupDirectory(folder);
  mkdirSync(join(folder, 'blocks/ab'), { recursive: true });
  for (const name of ['20260102T030405.678Z.json', 'blocks/ab/cd.zst'])
    writeFileSync(join(folder, `${name}.77.tmp`), 'part');
  await store.prune();
  expect(readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()).toEqual([
    'blocks',
    'blocks/ab',
    'cloudyard-backups.json',
  ]);
});

it('a full disk is the reason why an archive cannot be unpacked', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-blocks-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  symlinkSync('/dev/full', join(folder, 'cloudyard-backups.json'));
  const archive = Readable.from([tarEntry('cloudyard-backups.json', Buffer.from('{"format":1}\n'))]);
  await expect(unpackBackup(archive, folder)).rejects.toThrow(`written to ${folder}: the disk is full`);
});
