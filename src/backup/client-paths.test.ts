/** Paths that only clients create, in shares that are plain folders: the backup and the restore keep each byte. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { cloneDatabase } from '../../test/harness.ts';
import { inDatabase } from '../../test/postgres.ts';
import { migrations } from '../main/backups.ts';
import { withClient } from '../platform/with-client.ts';
import { type BackupOptions, makeBackup } from './backup.ts';
import { type BackupDirectory, openBackupDirectory } from './block-store.ts';
import { copyFiles } from './files.ts';
import type { Manifest } from './format.ts';
import { restoreBackup } from './restore.ts';

const folder = mkdtempSync(join(tmpdir(), 'cloudyard-paths-'));
const share = 'file-shares/mounts/plain';
const created: string[] = [];
let database: Awaited<ReturnType<typeof cloneDatabase>>;
let store: BackupDirectory;

const asAdmin = (text: string) => withClient(inject('postgres'), (client) => client.query(text));

beforeAll(async () => {
  database = await cloneDatabase(inject('postgres'));
  store = await openBackupDirectory(join(folder, 'store'));
});

afterAll(async () => {
  await database.drop();
  for (const name of created) await asAdmin(`drop database if exists ${name} with (force)`);
  execFileSync('rm', ['-rf', folder]);
});

function newHost(name: string): string {
  const host = join(folder, name);
  mkdirSync(join(host, share), { recursive: true });
  return host;
}

/** Folders in folders, which no single path of the system reaches. */
function makeDeep(at: string, name: string, depth: number): void {
  const program =
    'const [, at, name, depth] = process.argv; const fs = require("fs"); process.chdir(at);' +
    'for (let i = 0; i < depth; i++) { fs.mkdirSync(name, 0o750); process.chdir(name) }' +
    'fs.writeFileSync("file", "deep", { mode: 0o640 }); fs.symlinkSync("file", "link")';
  execFileSync(process.execPath, ['-e', program, at, name, String(depth)]);
}

async function backUp(dataDir: string): Promise<{ manifest: Manifest; omitted: string[] }> {
  const omitted: string[] = [];
  const { connection } = database;
  const options: BackupOptions = {
    ...{ connection, migrations: migrations(), version: '1', configuration: [] },
    ...{ reason: 'command', keyFile: join(folder, 'absent'), protection: null },
    copyFiles: (sink) => copyFiles(dataDir, sink, (each) => omitted.push(each)),
  };
  const { id } = await makeBackup(options, store);
  // As it is stored.
  return { manifest: await store.manifest(id), omitted };
}

const restoreInto = async (dataDir: string, manifest: Manifest, source: Pick<BackupDirectory, 'block'> = store) => {
  const name = `paths_${process.pid}_${created.length}`;
  await asAdmin(`create database ${name}`);
  created.push(name);
  mkdirSync(dataDir, { recursive: true });
  await restoreBackup({
    ...{ source: { ...store, ...source }, manifest, migrations: migrations(), version: '1', dataDir, keys: null },
    ...{ keyFile: join(dataDir, 'secret.keys'), opener: { passphrase: undefined, ageIdentityFile: undefined } },
    connection: inDatabase(inject('postgres'), name),
  });
};

/** Of all names, modes, owners, times in seconds, links and bytes. */
const archiveOf = (dataDir: string) =>
  execFileSync('sh', [
    '-c',
    'tar -C "$1" --sort=name --mtime=@0 -cf - file-shares | sha256sum',
    'sh',
    dataDir,
  ]).toString();

it('keep paths beyond the limit of the system', async () => {
  const host = newHost('deep');
  makeDeep(join(host, share), 'n'.repeat(250), 40);
  const { manifest, omitted } = await backUp(host);
  expect(omitted).toEqual([]);
  const target = join(folder, 'deep-restored');
  await restoreInto(target, manifest);
  expect(archiveOf(target)).toBe(archiveOf(host));
});

it('keep names and links that are not UTF-8', async () => {
  const host = newHost('bytes');
  const at = (...names: (string | Buffer)[]) =>
    Buffer.concat([Buffer.from(join(host, share)), ...names.flatMap((each) => [Buffer.from('/'), Buffer.from(each)])]);
  const latin = Buffer.from('caf\xe9', 'latin1');
  mkdirSync(at(latin), 0o710);
  writeFileSync(at(latin, Buffer.from([0xff, 0x0a, 0x5c])), 'in a folder');
  writeFileSync(at(latin, 'café'), 'UTF-8 below it');
  writeFileSync(at('caf\ufffd'), 'its replacement character');
  symlinkSync(latin, at('link'));
  const { manifest } = await backUp(host);
  const target = join(folder, 'bytes-restored');
  await restoreInto(target, manifest);
  expect(archiveOf(target)).toBe(archiveOf(host));
});

it('leave nothing after a restore that failed', async () => {
  const host = newHost('failing');
  makeDeep(join(host, share), 'n'.repeat(250), 40);
  writeFileSync(Buffer.concat([Buffer.from(join(host, share, 'm')), Buffer.from([0xff])]), 'bytes');
  // After them.
  writeFileSync(join(host, share, 'z'), 'last');
  const { manifest } = await backUp(host);
  const target = join(folder, 'failed');
  const last = manifest.files!.find(({ path }) => path === `${share}/z`)!.blocks![0];
  const block = async (hash: string) => {
    if (hash === last) throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    return store.block(hash);
  };
  await expect(restoreInto(target, manifest, { block })).rejects.toThrow(
    `the backup cannot be restored to ${target}: the disk is full`,
  );
  expect(execFileSync('ls', ['-A', target]).toString()).toBe('');
});

it('that are deeper than a backup follows are reported, and the other files are in it', async () => {
  const host = newHost('deepest');
  makeDeep(join(host, share), 'd', 510);
  writeFileSync(join(host, share, 'other'), 'other');
  const { manifest, omitted } = await backUp(host);
  expect(omitted).toHaveLength(1);
  expect(omitted[0]).toMatch(/mounts\/plain(\/d)+\/?…$/);
  expect(manifest.files!.map(({ path }) => path)).toContain(`${share}/other`);
  const target = join(folder, 'deepest-restored');
  await restoreInto(target, manifest);
  expect(readFileSync(join(target, share, 'other'), 'utf8')).toBe('other');
});

it('of a folder that the operator moved to another disk are restored below the data directory', async () => {
  const host = newHost('linked');
  const disk = join(folder, 'disk');
  mkdirSync(join(disk, 'volumes/images'), { recursive: true });
  mkdirSync(join(disk, 'snapshots'));
  writeFileSync(join(disk, 'volumes/images/one.raw'), 'image');
  writeFileSync(join(disk, 'snapshots/two.raw'), 'snapshot');
  symlinkSync(join(disk, 'volumes'), join(host, 'volumes'));
  symlinkSync(join(disk, 'snapshots'), join(disk, 'volumes/snapshots'));
  const { manifest } = await backUp(host);
  const target = join(folder, 'linked-restored');
  const { checkBackup } = await import('./restore.ts');
  const opener = { passphrase: undefined, ageIdentityFile: undefined };
  const check = {
    source: store,
    manifest,
    migrations: migrations(),
    version: '1',
    dataDir: target,
    keyFile: '',
    opener,
  };
  await checkBackup(check);
  await restoreInto(target, manifest);
  expect(readFileSync(join(target, 'volumes/images/one.raw'), 'utf8')).toBe('image');
  expect(readFileSync(join(target, 'volumes/snapshots/two.raw'), 'utf8')).toBe('snapshot');
});
