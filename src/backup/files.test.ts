import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { cloneDatabase } from '../../test/harness.ts';
import { inDatabase } from '../../test/postgres.ts';
import { requires, skipReason } from '../../test/requires.ts';
import { migrations } from '../main/backups.ts';
import { withClient } from '../platform/with-client.ts';
import { type BackupOptions, makeBackup } from './backup.ts';
import { type BackupSink, openBackupDirectory } from './block-store.ts';
import { copyFiles } from './files.ts';
import { maxBlockBytes } from './format.ts';
import { restoreBackup } from './restore.ts';

const folder = mkdtempSync(join(tmpdir(), 'cloudyard-files-'));
const dataDir = join(folder, 'data');
const restored = join(folder, 'restored');
const image = 'volumes/images/one.raw';
const emptied = `files_${process.pid}`;
let database: Awaited<ReturnType<typeof cloneDatabase>>;

const asAdmin = (text: string) => withClient(inject('postgres'), (client) => client.query(text));

beforeAll(async () => {
  database = await cloneDatabase(inject('postgres'));
  await asAdmin(`create database ${emptied}`);
  for (const part of [
    'volumes/images',
    'file-shares/mounts/plain',
    'file-shares/specs',
    'registries/storage/docker/registry/v2/blobs',
  ]) {
    mkdirSync(join(dataDir, part), { recursive: true });
  }
  writeFileSync(join(dataDir, image), randomBytes(maxBlockBytes + 10));
  truncateSync(join(dataDir, image), 64 * maxBlockBytes + 5);
  writeFileSync(join(dataDir, 'file-shares/mounts/plain/notes'), 'text');
  chmodSync(join(dataDir, 'file-shares/mounts/plain/notes'), 0o640);
  chmodSync(join(dataDir, 'file-shares/mounts/plain'), 0o751);
  symlinkSync('notes', join(dataDir, 'file-shares/mounts/plain/link'));
  writeFileSync(join(dataDir, 'postgres.log'), 'not part of it');
});

afterAll(async () => {
  await database.drop();
  await asAdmin(`drop database if exists ${emptied} with (force)`);
  rmSync(folder, { recursive: true, force: true });
});

it('files are restored with their bytes, holes, modes and links, and a second backup stores changes only', async () => {
  const store = await openBackupDirectory(join(folder, 'store'));
  const { connection } = database;
  const options: BackupOptions = {
    ...{ connection, migrations: migrations(), version: '1', configuration: [] },
    ...{ reason: 'command', keyFile: join(folder, 'absent'), protection: null },
    copyFiles: (sink) => copyFiles(dataDir, sink, () => {}),
  };
  await makeBackup(options, store);
  const first = store.written();
  expect(first).toBeGreaterThan(maxBlockBytes);
  const manifest = await makeBackup(options, store);
  expect(store.written()).toBe(first);

  mkdirSync(restored);
  await restoreBackup({
    ...{ source: store, manifest, migrations: migrations(), version: '1', dataDir: restored, keys: null },
    ...{ keyFile: join(restored, 'secret.keys'), opener: { passphrase: undefined, ageIdentityFile: undefined } },
    connection: inDatabase(inject('postgres'), emptied),
  });
  execFileSync('diff', ['-r', '--no-dereference', join(dataDir, 'volumes'), join(restored, 'volumes')]);
  execFileSync('diff', ['-r', '--no-dereference', join(dataDir, 'file-shares'), join(restored, 'file-shares')]);
  expect(statSync(join(restored, image)).blocks * 512).toBeLessThan(3 * maxBlockBytes);
  for (const path of ['file-shares/mounts/plain', 'file-shares/mounts/plain/notes']) {
    expect(statSync(join(restored, path)).mode).toBe(statSync(join(dataDir, path)).mode);
    expect(statSync(join(restored, path)).mtimeMs).toBeCloseTo(statSync(join(dataDir, path)).mtimeMs, -1);
  }
  expect(() => readFileSync(join(restored, 'postgres.log'))).toThrow('ENOENT');
});

it('a folder of a share that a client replaces by a link is not followed out of the share', async () => {
  const host = join(folder, 'hostile');
  const share = join(host, 'file-shares/mounts/plain/folder');
  const outside = join(folder, 'outside');
  for (const [place, text] of Object.entries({ [share]: 'of the client', [outside]: 'of the host' })) {
    mkdirSync(join(place, 'below'), { recursive: true });
    for (const name of ['a', 'b', 'below/c']) writeFileSync(join(place, name), text);
  }
  const copied: string[] = [];
  const sink: BackupSink = {
    putBlock: async (plain) => {
      copied.push(plain.toString());
      // The names in the folder have been read.
      if (copied.length === 1) {
        renameSync(share, `${share}-moved`);
        symlinkSync(outside, share);
      }
      return 'hash';
    },
    putManifest: async () => {},
    written: () => 0,
  };
  await copyFiles(host, sink, () => {});
  // The folder was open, so its files are copied where they are now.
  expect(copied).toEqual(['of the client', 'of the client', 'of the client']);
});

describe.skipIf(!requires('xfsprogs', 'root'))(skipReason('xfsprogs', 'root') ?? 'a mounted image', () => {
  const host = join(folder, 'host');
  const path = 'file-shares/images/one.xfs';
  const mount = join(host, 'file-shares/mounts/one');
  const copied = join(folder, 'copied');

  afterAll(() => {
    for (const each of [copied, mount]) execFileSync('sh', ['-c', 'umount "$1" 2>/dev/null || true', 'sh', each]);
  });

  it('is copied in a consistent state while a client writes, and the client can continue', async () => {
    for (const each of [join(host, 'file-shares/images'), mount, copied]) mkdirSync(each, { recursive: true });
    writeFileSync(join(host, path), '');
    truncateSync(join(host, path), 320 * 1024 * 1024);
    execFileSync('mkfs.xfs', ['-q', join(host, path)]);
    execFileSync('mount', ['-o', 'loop', join(host, path), mount]);
    const write = 'i=0; while :; do i=$((i+1)); mkdir "$1/$i" && echo $i >"$1/$i/f" && echo $i >"$1/count"; done';
    const writer = spawn('sh', ['-c', write, 'sh', mount], { stdio: 'ignore' });
    const count = () => Number(readFileSync(join(mount, 'count'), 'utf8'));
    try {
      await expect.poll(count).toBeGreaterThan(20);
      const store = await openBackupDirectory(join(folder, 'frozen'));
      const files = await copyFiles(host, store, () => {});
      const at = count();
      await expect.poll(count).toBeGreaterThan(at + 20);
      expect(files.filter(({ path }) => path.startsWith('file-shares/mounts/'))).toEqual([]);
      const copy = files.find((file) => file.path === path)!;
      const target = join(folder, 'copy.xfs');
      writeFileSync(target, '');
      truncateSync(target, copy.size);
      const handle = openSync(target, 'r+');
      for (const [i, hash] of copy.blocks!.entries()) {
        if (hash !== null) writeSync(handle, await store.block(hash), 0, undefined, i * maxBlockBytes);
      }
      closeSync(handle);
    } finally {
      writer.kill('SIGKILL');
    }
    execFileSync('mount', ['-o', 'loop,nouuid', join(folder, 'copy.xfs'), copied]);
    const last = readdirSync(copied).filter((name) => name !== 'count').length;
    expect(last).toBeGreaterThan(20);
    // Directories appear before their file: the last one may be empty, no other is.
    expect(readFileSync(join(copied, String(last - 1), 'f'), 'utf8')).toBe(`${last - 1}\n`);
  });
});
