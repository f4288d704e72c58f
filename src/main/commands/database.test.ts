import { spawnSync } from 'node:child_process';
import { lchownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, expect, inject, it, vi } from 'vitest';
import { inDatabase } from '../../../test/postgres.ts';
import { requires } from '../../../test/requires.ts';
import { withBackupLock } from '../../backup/backup.ts';
import { createSchema } from '../../backup/migrations.ts';
import { migrations } from '../backups.ts';
import { migrate } from '../migrate.ts';
import { backupBeforeMigration, refuseInterruptedRestore } from '../migration-backup.ts';
import { checkoutPlaces } from '../../platform/program-files.ts';
import { readSettings } from '../settings.ts';
import { withTemporaryFolder } from '../temporary-folder.ts';
import { moveDatabase, rollBack } from './database.ts';

const folder = mkdtempSync(join(tmpdir(), 'cloudyard-migrate-'));
const server = inject('postgres');
const names: string[] = [];

/** Also for a server that only a socket reaches. */
function urlOf(name: string): string {
  const connection = inDatabase(server, name);
  if (connection.connectionString) return connection.connectionString;
  const { user, host, port } = connection;
  return `postgres://${user}@${encodeURIComponent(host!)}:${port}/${name}`;
}

async function query(url: string, text: string): Promise<any[]> {
  const client = new pg.Client(url);
  await client.connect();
  return (await client.query(text).finally(() => client.end())).rows;
}

async function newDatabase(): Promise<string> {
  const name = `migrated_${process.pid}_${names.length}`;
  names.push(name);
  const client = new pg.Client(server);
  await client.connect();
  await client.query(`create database ${name}`).finally(() => client.end());
  return urlOf(name);
}

function settingsOf(url: string, name: string) {
  const dataDir = join(folder, name);
  mkdirSync(dataDir, { recursive: true });
  return readSettings({ DATABASE_URL: url, CLOUDYARD_DATA_DIR: dataDir }, checkoutPlaces(process.cwd()), false);
}

/** As release 0.2.0 left it. */
async function oldDatabase(): Promise<string> {
  const url = await newDatabase();
  const client = new pg.Client(url);
  await client.connect();
  const [first] = migrations().list;
  await createSchema(client, migrations(), first!);
  await client.query('insert into drizzle.__drizzle_migrations (hash, created_at) values ($1, $2)', ['x', first!.when]);
  await client.query(`insert into clients (name, operator, created_at) values ('Operator', true, now())`);
  await client.end();
  return url;
}

const tablesOf = (url: string) =>
  query(
    url,
    `select table_name as name, count(*)::int as columns from information_schema.columns
    where table_schema = 'public' group by 1 order by 1`,
  );

afterEach(async () => {
  const client = new pg.Client(server);
  await client.connect();
  for (const name of names.splice(0)) await client.query(`drop database if exists ${name} with (force)`);
  await client.end();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('a database is backed up before its migration, and the migration can be rolled back', async () => {
  const url = await oldDatabase();
  const before = await tablesOf(url);
  const settings = settingsOf(url, 'one');
  const lines: string[] = [];
  const backup = backupBeforeMigration(settings, (line) => lines.push(line));
  await migrate({ connectionString: url }, backup);
  expect(await tablesOf(url)).not.toEqual(before);
  const file = / --rollback-from (\S+\.json)$/.exec(lines[0]!)![1]!;
  await query(url, `insert into clients (name, operator, created_at) values ('later', false, now())`);

  const server = new pg.Client({ connectionString: url, application_name: 'cloudyard api' });
  await server.connect();
  await expect(rollBack(settings, file)).rejects.toThrow('in use by cloudyard api; stop all servers and workers first');
  await server.end();
  const connections = `select from pg_stat_activity where datname = current_database() and application_name = 'cloudyard api'`;
  await expect.poll(() => query(url, connections)).toEqual([]);

  await rollBack(settings, file);
  expect(await tablesOf(url)).toEqual(before);
  expect(await query(url, 'select name from clients')).toEqual([{ name: 'Operator' }]);
  expect(await query(url, `select to_regnamespace('cloudyard_writes') as name`)).toEqual([{ name: null }]);
  // The state before the rollback is kept, and the upgrade can be repeated.
  expect(readdirSync(settings.backup.dir).filter((name) => /^\d.*\.json$/.test(name))).toHaveLength(2);
  await migrate({ connectionString: url }, backup);
  expect(lines).toHaveLength(2);
});

it('a server that starts during the rollback waits for its end', async () => {
  const url = await oldDatabase();
  const settings = settingsOf(url, 'waiting');
  const lines: string[] = [];
  await migrate(
    { connectionString: url },
    backupBeforeMigration(settings, (line) => lines.push(line)),
  );
  const file = / --rollback-from (\S+\.json)$/.exec(lines[0]!)![1]!;
  const newest = await tablesOf(url);
  // The backup of the current database waits for this lock.
  const blocker = new pg.Client(url);
  await blocker.connect();
  await blocker.query('begin; lock table clients in access exclusive mode');
  const waiting = (type: string) => query(url, `select 1 from pg_locks where locktype = '${type}' and not granted`);
  const back = rollBack(settings, file);
  await expect.poll(() => waiting('relation')).toHaveLength(1);
  const reported: string[] = [];
  const start = migrate({ connectionString: url }, null, (line) => reported.push(line));
  await expect.poll(() => waiting('advisory')).toHaveLength(1);
  await expect
    .poll(() => reported, { timeout: 10_000 })
    .toEqual(['waiting until another process has migrated or replaced the database']);
  await blocker.end();
  await back;
  await start;
  expect(await tablesOf(url)).toEqual(newest);
});

it('folders that killed commands left are removed by the next one; those of running commands stay', async () => {
  const dataDir = join(folder, 'abandoned');
  mkdirSync(dataDir, { recursive: true });
  const dead = spawnSync('true').pid;
  const names = [
    `moving-${hostname()}-${dead}`,
    `unpacked-${hostname()}-${dead}`,
    `moving-${hostname()}-1`,
    'unpacked-other-1',
  ];
  for (const name of names) mkdirSync(join(dataDir, `.${name}`));
  await withTemporaryFolder(dataDir, 'moving', async (own) => expect(readdirSync(own)).toEqual([]));
  expect(readdirSync(dataDir).sort()).toEqual([`.moving-${hostname()}-1`, '.unpacked-other-1']);
});

it.skipIf(!requires('root'))(
  'root uses and removes nothing that the account of the data directory planted',
  async () => {
    const [dataDir, other] = [join(folder, 'of an account'), join(folder, 'of root')];
    for (const path of [dataDir, other]) mkdirSync(path);
    const planted = [`.unpacked-${hostname()}-${spawnSync('true').pid}`, `.moving-${hostname()}-${process.pid}`];
    mkdirSync(join(dataDir, planted[0]!));
    symlinkSync(other, join(dataDir, planted[1]!));
    for (const name of planted) lchownSync(join(dataDir, name), 65_534, 65_534);
    const work = vi.fn<(folder: string) => Promise<void>>();
    await expect(withTemporaryFolder(dataDir, 'moving', work)).rejects.toThrow('EEXIST');
    expect(work).not.toHaveBeenCalled();
    expect(readdirSync(dataDir).sort()).toEqual(planted.toSorted());
  },
);

it('a migration whose backup must wait for another backup says so', async () => {
  const url = await oldDatabase();
  const lines: string[] = [];
  const backup = backupBeforeMigration(settingsOf(url, 'second'), (line) => lines.push(line));
  let migrated: Promise<void>;
  await withBackupLock({ connectionString: url }, {}, async () => {
    migrated = migrate({ connectionString: url }, backup);
    const reason = 'waiting until another backup of this database has ended';
    await expect.poll(() => lines).toEqual([`the backup before the migration is ${reason}`]);
  });
  await migrated!;
  expect(lines[1]).toContain('backed up the database before its migration');
});

it('an empty database and one that is up to date are not backed up', async () => {
  const url = await newDatabase();
  const settings = settingsOf(url, 'two');
  const backup = backupBeforeMigration(settings, () => {});
  await migrate({ connectionString: url }, backup);
  await migrate({ connectionString: url }, backup);
  expect(readdirSync(settings.dataDir)).toEqual([]);
});

it('a database whose backup fails is not migrated', async () => {
  const url = await oldDatabase();
  const before = await tablesOf(url);
  const settings = settingsOf(url, 'three');
  writeFileSync(settings.backup.dir, 'a file');
  const migrating = migrate(
    { connectionString: url },
    backupBeforeMigration(settings, () => {}),
  );
  await expect(migrating).rejects.toThrow('the backup before the migration failed, so the database was not migrated');
  expect(await tablesOf(url)).toEqual(before);
});

it('a database moves to another server with all of its rows', async () => {
  const [url, target] = [await newDatabase(), await newDatabase()];
  await migrate({ connectionString: url });
  await query(
    url,
    `insert into clients (name, operator, created_at) select 'client ' || n, false, now() from generate_series(1, 500) n`,
  );
  const settings = settingsOf(url, 'four');
  const file = join(folder, 'url');
  writeFileSync(file, `${target}\n`);
  await moveDatabase(settings, file);
  const rows = 'select * from clients order by id';
  expect(await query(target, rows)).toEqual(await query(url, rows));
  expect(await tablesOf(target)).toEqual(await tablesOf(url));
  await expect(moveDatabase(settings, file)).rejects.toThrow('the database is not empty');
  expect(readdirSync(settings.dataDir)).toEqual([]);
});

it('a file with the new URL that cannot be read is named', async () => {
  const settings = settingsOf('postgres://127.0.0.1:9/none', 'six');
  for (const [file, code] of [
    [join(folder, 'absent'), 'ENOENT'],
    [folder, 'EISDIR'],
  ] as const) {
    await expect(moveDatabase(settings, file)).rejects.toThrow(`--to ${file} cannot be read (${code})`);
  }
});

it('a server refuses the data of a restore that did not commit, and accepts that of one that did', async () => {
  const url = await newDatabase();
  const settings = settingsOf(url, 'five');
  const restoring = join(settings.dataDir, 'restoring');
  mkdirSync(restoring);
  const check = () => refuseInterruptedRestore(settings, { connectionString: url });
  await expect(check()).rejects.toThrow('was interrupted; run it again');
  await migrate({ connectionString: url });
  await check();
  expect(readdirSync(settings.dataDir)).toEqual([]);
});
