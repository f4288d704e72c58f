import {
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable, Writable } from 'node:stream';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { createExamples } from '../../bench/examples.ts';
import { pathsOf, responses } from '../../test/all-responses.ts';
import { type Cloudyard, openCloudyard } from '../../test/harness.ts';
import { inDatabase } from '../../test/postgres.ts';
import { migrations } from '../main/backups.ts';
import { migrate } from '../main/migrate.ts';
import type { ConnectionOptions } from '../platform/db.ts';
import { type BackupOptions, makeBackup, withBackupLock } from './backup.ts';
import {
  type BackupSource,
  backupStream,
  openBackupDirectory,
  readBackupDirectory,
  unpackBackup,
} from './block-store.ts';
import { blockPath, type Manifest } from './format.ts';
import { checkBackup, requireEmptyDirectory, restoreBackup, type RestoreOptions } from './restore.ts';

const folder = mkdtempSync(join(tmpdir(), 'cloudyard-backup-'));
const place = (name: string) => join(folder, name);
const server = inject('postgres');
const databases: string[] = [];

async function asAdmin(text: string): Promise<void> {
  const client = new pg.Client(server);
  await client.connect();
  await client.query(text).finally(() => client.end());
}

async function emptyDatabase(): Promise<ConnectionOptions> {
  const name = `restored_${process.pid}_${databases.length}`;
  databases.push(name);
  await asAdmin(`create database ${name}`);
  return inDatabase(server, name);
}

async function query(connection: ConnectionOptions, text: string): Promise<any[]> {
  const client = new pg.Client(connection);
  await client.connect();
  return (await client.query(text).finally(() => client.end())).rows;
}

const options = (connection: ConnectionOptions): BackupOptions => ({
  ...{ connection, migrations: migrations(), version: '9.9.9', reason: 'command', copyFiles: null },
  keyFile: place('secret.keys'),
  protection: { passphrase: 'correct horse' },
  configuration: [{ name: 'regions.yaml', text: 'regions: []\n' }],
});

/** Without keys, whose encryption takes 0.4 s of CPU time. */
const optionsWithoutKeys = (connection: ConnectionOptions): BackupOptions => ({
  ...options(connection),
  protection: null,
});

const restoreOptions = (source: BackupSource, manifest: Manifest, dataDir: string): RestoreOptions => ({
  ...{ source, manifest, migrations: migrations(), version: '9.9.9', dataDir, keyFile: join(dataDir, 'secret.keys') },
  opener: { passphrase: 'correct horse', ageIdentityFile: undefined },
});

async function restoreInto(source: BackupSource, manifest: Manifest, dataDir: string): Promise<ConnectionOptions> {
  const given = restoreOptions(source, manifest, dataDir);
  const keys = await checkBackup(given);
  await requireEmptyDirectory(given);
  const connection = await emptyDatabase();
  await restoreBackup({ ...given, connection, keys });
  return connection;
}

let cloud: Cloudyard;
let stop: () => Promise<void>;
let paths: string[];

beforeAll(async () => {
  writeFileSync(place('secret.keys'), 'key-1 AAAA\n');
  const opened = await openCloudyard(server);
  ({ cloudyard: cloud, stop } = opened);
  const request = async (method: string, path: string, body?: unknown) => {
    const answer = await cloud.request(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  paths = pathsOf(await createExamples({ request } as never));
  // Servers write the last use of the token once a minute. A time in the future stays.
  await query(cloud.connection, `update tokens set last_used_at = '2100-01-01'`);
  // A delivery that ends after the backup would differ.
  const pending = `select id from notification_deliveries where state = 'pending'`;
  await vi.waitFor(async () => expect(await query(cloud.connection, pending)).toEqual([]), { timeout: 30_000 });
});

/** Drivers report the state of resources from time to time: a backup during which no response has changed. */
async function backUpWithoutChanges() {
  for (let attempt = 1; ; attempt++) {
    const directory = place(`unchanged-${attempt}`);
    const before = await responses(cloud.connection, cloud.admin, paths);
    const manifest = await makeBackup(options(cloud.connection), await openBackupDirectory(directory));
    const after = await responses(cloud.connection, cloud.admin, paths);
    if (attempt === 5 || isDeepStrictEqual(before, after)) return { manifest, directory, before };
  }
}

afterAll(async () => {
  await stop?.();
  for (const name of databases) await asAdmin(`drop database if exists ${name} with (force)`);
  rmSync(folder, { recursive: true, force: true });
});

describe('a backup', () => {
  it('restores an installation with the same response, byte for byte, for every resource', async () => {
    const { manifest, directory, before } = await backUpWithoutChanges();
    const restored = await restoreInto(await readBackupDirectory(directory), manifest, place('data-1'));
    await migrate(restored);
    const after = await responses(restored, cloud.admin, paths);
    expect(Object.keys(after)).toEqual(Object.keys(before));
    expect(Object.keys(before).filter((path) => after[path] !== before[path])).toEqual([]);
    expect(Object.keys(before).length).toBeGreaterThan(60);
    expect(readFileSync(join(place('data-1'), 'secret.keys'), 'utf8')).toBe('key-1 AAAA\n');
    expect(readFileSync(join(place('data-1'), 'restored-configuration', 'regions.yaml'), 'utf8')).toBe('regions: []\n');
    expect(readdirSync(place('data-1')).sort()).toEqual(['restored-configuration', 'secret.keys']);
    const [{ next }] = await query(restored, "select nextval('projects_id_seq')::int as next");
    const [{ highest }] = await query(restored, 'select max(id) as highest from projects');
    expect(next).toBeGreaterThan(highest);
  });

  it('shares equal blocks with earlier ones, and pruning keeps the blocks of the others', async () => {
    const store = await openBackupDirectory(place('shared'));
    const one = await makeBackup(optionsWithoutKeys(cloud.connection), store);
    const firstBytes = store.written();
    const two = await makeBackup(optionsWithoutKeys(cloud.connection), store);
    // Only what workers and servers write all the time.
    expect(store.written() - firstBytes).toBeLessThan(firstBytes / 10);
    expect(await store.list()).toEqual([one.id, two.id]);
    await cloud.post('/cloudyard/v1/clients', { name: 'one more' });
    const three = await makeBackup(optionsWithoutKeys(cloud.connection), store);
    await store.remove(one.id);
    await store.remove(two.id);
    await store.prune();
    expect(await store.list()).toEqual([three.id]);
    await checkBackup(restoreOptions(store, three, place('none')));
    await store.remove(three.id);
    await store.prune();
    expect(
      readdirSync(join(place('shared'), 'blocks'), { recursive: true, encoding: 'utf8' }).filter((n) =>
        n.endsWith('.zst'),
      ),
    ).toEqual([]);
  });

  it('goes through a pipe', async () => {
    const pipe = new PassThrough();
    const reading = unpackBackup(pipe, place('piped'));
    const made = await makeBackup(options(cloud.connection), backupStream(pipe));
    pipe.end();
    const source = await reading;
    expect(await source.list()).toEqual([made.id]);
    expect(await source.manifest(made.id)).toEqual(made);
    await checkBackup(restoreOptions(source, made, place('none')));
  });

  it('fails when the reader of the pipe ends', async () => {
    const closed = new Writable({ write: (_chunk, _encoding, done) => done(new Error('write EPIPE')) });
    await expect(makeBackup(optionsWithoutKeys(cloud.connection), backupStream(closed))).rejects.toThrow('write EPIPE');
  });

  it('is refused when a second one of the database runs', async () => {
    const sink = await openBackupDirectory(place('twice'));
    await withBackupLock(cloud.connection, {}, async () => {
      await expect(makeBackup(optionsWithoutKeys(cloud.connection), sink)).rejects.toThrow(
        'another backup of this database is running',
      );
    });
  });

  it('is not complete when the connection of its lock ended, because another backup may have pruned its blocks', async () => {
    const sink = await openBackupDirectory(place('unlocked'));
    const copyFiles = async () => {
      await query(
        cloud.connection,
        `select pg_terminate_backend(pid) from pg_stat_activity
         where application_name = 'cloudyard backup' and datname = current_database()`,
      );
      return [];
    };
    await expect(makeBackup({ ...optionsWithoutKeys(cloud.connection), copyFiles }, sink)).rejects.toThrow(
      'the connection to the database ended during the backup',
    );
    expect(await sink.list()).toEqual([]);
  });

  it('is not written to a directory that has other contents, or that it cannot create', async () => {
    await expect(openBackupDirectory(folder)).rejects.toThrow(/is not empty and has no cloudyard-backups.json/);
    await expect(openBackupDirectory(join(place('secret.keys'), 'x'))).rejects.toThrow('it is not a directory');
  });
});

describe('a restore', () => {
  let manifest: Manifest;
  let bytes: Buffer;

  const unpack = (changed: Buffer, name: string) => unpackBackup(Readable.from([changed]), place(name));

  beforeAll(async () => {
    const pipe = new PassThrough();
    const parts: Buffer[] = [];
    pipe.on('data', (part: Buffer) => parts.push(part));
    manifest = await makeBackup(options(cloud.connection), backupStream(pipe));
    bytes = Buffer.concat(parts);
  });

  it('refuses a backup that was cut short at any place', async () => {
    for (const [i, share] of [0, 0.3, 0.7, 0.9].entries()) {
      const cut = bytes.subarray(0, Math.floor(bytes.length * share));
      await expect(unpack(cut, `cut-${i}`)).rejects.toThrow('the input was cut short');
    }
    await expect(unpack(bytes.subarray(0, bytes.length - 1024), 'cut-end')).rejects.toThrow('cut short');
  });

  it('refuses a backup with a flipped bit, wherever it is', async () => {
    // Not in the padding between entries and at the end, which has no meaning.
    const entries = await unpack(bytes, 'whole');
    expect(await entries.list()).toEqual([manifest.id]);
    let refused = 0;
    for (let i = 0; i < 40; i++) {
      const changed = Buffer.from(bytes);
      const at = Math.floor((bytes.length * (i + 0.5)) / 40);
      if (changed[at] === 0) continue;
      changed[at]! ^= 1 << (i % 8);
      try {
        const source = await unpack(changed, `flipped-${i}`);
        const [id] = await source.list();
        const found = await source.manifest(id!);
        // Keys of this id that are as they were decrypt, as other tests show.
        const isSame = found.id === manifest.id && isDeepStrictEqual(found.keys, manifest.keys);
        await checkBackup(restoreOptions(source, isSame ? { ...found, keys: null } : found, place('none')));
        // A bit without a meaning, as some in headers of tar and zstd: everything is as it was.
        expect(found).toEqual(manifest);
      } catch (error) {
        expect((error as Error).message).toMatch(
          /damaged|cut short|cannot be read|not part of a backup|not a backup|has no backups/,
        );
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(20);
  });

  it('refuses a newer schema and another format, and names both versions', async () => {
    const source = await unpack(bytes, 'newer');
    const newer = { ...manifest, version: '10.0.0', schema: { migration: '0099_future', when: 9e12 } };
    const newest = migrations().list.at(-1)!.migration;
    await expect(checkBackup(restoreOptions(source, newer, place('none')))).rejects.toThrow(
      `backup ${manifest.id} of Cloudyard 10.0.0 has schema 0099_future, which is newer than schema ${newest} of Cloudyard 9.9.9`,
    );
    writeFileSync(join(place('newer'), 'cloudyard-backups.json'), '{"format":2}\n');
    await expect(readBackupDirectory(place('newer'))).rejects.toThrow(
      'has format 2, but this version reads format 1 only',
    );
  });

  it('refuses a wrong passphrase and a missing one', async () => {
    const source = await unpack(bytes, 'passphrase');
    const given = restoreOptions(source, manifest, place('none'));
    const opened = (passphrase?: string) =>
      checkBackup({ ...given, opener: { passphrase, ageIdentityFile: undefined } });
    await expect(opened('wrong')).rejects.toThrow('the passphrase does not decrypt the keys');
    await expect(opened()).rejects.toThrow('set CLOUDYARD_BACKUP_PASSPHRASE_FILE');
  });

  it('refuses an installation that is not empty, and changes nothing in it', async () => {
    const source = await unpack(bytes, 'occupied');
    const given = restoreOptions(source, manifest, place('occupied-data'));
    const keys = await checkBackup(given);
    const occupied = await emptyDatabase();
    await query(occupied, 'create table mine (id int)');
    await expect(restoreBackup({ ...given, connection: occupied, keys })).rejects.toThrow('the database is not empty');
    expect(await query(occupied, `select to_regclass('clients') as name`)).toEqual([{ name: null }]);
    await openBackupDirectory(place('occupied-data'));
    await expect(requireEmptyDirectory(given)).rejects.toThrow('is not empty (cloudyard-backups.json)');
  });

  it('that fails half way leaves nothing, and can be repeated', async () => {
    const source = await unpack(bytes, 'failing');
    const last = manifest.tables.filter(({ blocks }) => blocks.length > 0).at(-1)!.blocks[0]!;
    const failing = {
      ...source,
      block: async (hash: string) => {
        if (hash === last) throw new Error('the disk is gone');
        return source.block(hash);
      },
    };
    const given = restoreOptions(failing, manifest, place('repeated'));
    const connection = await emptyDatabase();
    await expect(restoreBackup({ ...given, connection, keys: null })).rejects.toThrow('the disk is gone');
    expect(await query(connection, `select to_regclass('clients') as name`)).toEqual([{ name: null }]);
    await requireEmptyDirectory(given);
    await restoreBackup({ ...given, source, connection, keys: null });
    expect((await query(connection, 'select count(*)::int as count from file_shares'))[0].count).toBe(20);
  });

  it('without keys keeps a key file that was copied after it was interrupted', async () => {
    const source = await unpack(bytes, 'without-keys');
    const dataDir = place('without-keys-data');
    const given = { ...restoreOptions(source, manifest, dataDir), keyFile: place('copied.keys') };
    const connection = await emptyDatabase();
    const killed = new Error('killed');
    // The state at a kill: the list of places is complete, and nothing has removed it.
    let listed = '';
    const interrupted = {
      ...source,
      block: async (hash: string) => {
        if (hash !== fileBlock) return source.block(hash);
        listed = readFileSync(join(dataDir, 'restoring', 'targets.json'), 'utf8');
        throw killed;
      },
    };
    const fileBlock = 'f'.repeat(64);
    const file = { path: 'volumes', mode: 0o600, uid: 0, gid: 0, size: 1, mtimeMs: 0, blocks: [fileBlock] };
    const withFile = { ...manifest, files: [file] };
    const restoring = restoreBackup({ ...given, source: interrupted, manifest: withFile, connection, keys: null });
    await expect(restoring).rejects.toThrow(killed);
    mkdirSync(join(dataDir, 'restoring'), { recursive: true });
    writeFileSync(join(dataDir, 'restoring', 'targets.json'), listed);
    writeFileSync(given.keyFile, 'the only copy');
    await restoreBackup({ ...given, connection, keys: null });
    expect(readFileSync(given.keyFile, 'utf8')).toBe('the only copy');
  });

  it('is repeated after one whose list of places was cut short', async () => {
    const source = await unpack(bytes, 'short-list');
    const given = restoreOptions(source, manifest, place('short-list-data'));
    mkdirSync(join(given.dataDir, 'restoring'), { recursive: true });
    writeFileSync(join(given.dataDir, 'restoring', 'targets.json'), '["/srv');
    await requireEmptyDirectory(given);
    const connection = await emptyDatabase();
    await restoreBackup({ ...given, connection, keys: null });
    expect((await query(connection, 'select count(*)::int as count from file_shares'))[0].count).toBe(20);
  });

  it('that committed and was then interrupted is not undone by another', async () => {
    const source = await unpack(bytes, 'committed');
    const given = restoreOptions(source, manifest, place('committed-data'));
    const connection = await emptyDatabase();
    const keys = await checkBackup(given);
    await restoreBackup({ ...given, connection, keys });
    const before = readFileSync(given.keyFile);
    mkdirSync(join(given.dataDir, 'restoring'));
    writeFileSync(
      join(given.dataDir, 'restoring', 'targets.json'),
      JSON.stringify([given.keyFile, join(given.dataDir, 'restored-configuration')]),
    );
    await requireEmptyDirectory(given);
    await expect(restoreBackup({ ...given, connection, keys })).rejects.toThrow('the database is not empty');
    expect(readFileSync(given.keyFile)).toEqual(before);
  });

  it.runIf(process.getuid?.() === 0)(
    'gives the key file to the owner of its folder, whose server reads it',
    async () => {
      const source = await unpack(bytes, 'owned');
      const given = restoreOptions(source, manifest, place('owned-data'));
      mkdirSync(given.dataDir);
      chownSync(given.dataDir, 65534, 65534);
      // That account must not choose where root writes.
      const other = place('a file of root');
      writeFileSync(other, 'unchanged');
      symlinkSync(other, `${given.keyFile}.restoring`);
      const keys = await checkBackup(given);
      await restoreBackup({ ...given, connection: await emptyDatabase(), keys });
      expect(lstatSync(given.keyFile)).toMatchObject({ uid: 65534, gid: 65534 });
      expect(readFileSync(other, 'utf8')).toBe('unchanged');
    },
  );

  it('notices a missing block of a directory', async () => {
    const source = await unpack(bytes, 'missing');
    const hash = manifest.tables.find(({ blocks }) => blocks.length > 0)!.blocks[0]!;
    rmSync(join(place('missing'), blockPath(hash)));
    await expect(checkBackup(restoreOptions(source, manifest, place('none')))).rejects.toThrow(
      `block ${blockPath(hash)} of the backup cannot be read (ENOENT)`,
    );
  });
});
