import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { copyPreparedCluster } from '../../test/prepared-cluster.ts';
import { liveProcess } from './running-processes.ts';
import { createAtomically, ensureSocketDir, findBinaries, placeBinaries } from './embedded-postgres-places.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 30_000 });

const asRoot = process.getuid?.() === 0;
const log = pino({ level: 'silent' });
let dir: string;
let started: EmbeddedPostgres[];

beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), 'postgres-test-')));
  // Like a data directory of root with the usual umask.
  chmodSync(dir, 0o755);
  started = [];
});

afterEach(async () => {
  await Promise.all(started.map((postgres) => postgres.stop()));
  for (const { connection } of started) {
    if (connection.host !== dir && !connection.host.startsWith(`${dir}/`))
      rmSync(connection.host, { recursive: true, force: true });
  }
  rmSync(dir, { recursive: true });
});

async function start(dataDir = join(dir, 'data')): Promise<EmbeddedPostgres> {
  const postgres = await startEmbeddedPostgres({ dataDir, log });
  started.push(postgres);
  return postgres;
}

/** The data directory after a first start: initdb takes most of the CPU time of one. */
async function prepareDataDir(): Promise<string> {
  const dataDir = join(dir, 'data');
  mkdirSync(dataDir);
  await copyPreparedCluster(dataDir);
  return dataDir;
}

const startPrepared = async () => start(await prepareDataDir());

async function query({ url }: EmbeddedPostgres, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

async function until(condition: () => boolean | Promise<boolean>, seconds = 20): Promise<void> {
  const deadline = Date.now() + seconds * 1000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`not within ${seconds} s: ${condition}`);
    await sleep(20);
  }
}

/** Starts PostgreSQL in another process, which is then killed with SIGKILL. */
async function startAndDie(dataDir: string): Promise<number> {
  const script = join(dir, 'start.mjs');
  const here = new URL('.', import.meta.url);
  writeFileSync(
    script,
    `import { startEmbeddedPostgres } from '${new URL('embedded-postgres.ts', here)}';
     const log = { info() {}, warn() {}, error() {} };
     const postgres = await startEmbeddedPostgres({ dataDir: ${JSON.stringify(dataDir)}, log });
     console.log(postgres.pid());`,
  );
  const child = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [output] = await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'exit');
  return Number(String(output));
}

test('a first start creates a durable UTF-8 database behind a private unix socket, and a second start finds its rows', async () => {
  const first = await start();
  await query(first, 'create table t (a text); insert into t values (1)');
  const sql = `select current_user u, current_database() d, pg_encoding_to_char(encoding) e, datlocale l,
    current_setting('fsync') f, current_setting('listen_addresses') a,
    current_setting('recovery_init_sync_method') r
    from pg_database where datname = current_database()`;
  const expected = { u: 'cloudyard', d: 'cloudyard', e: 'UTF8', l: 'C.UTF-8', f: 'on', a: '', r: 'syncfs' };
  expect(await query(first, sql)).toEqual([expected]);
  expect(statSync(first.connection.host).mode & 0o777).toBe(0o700);
  const pid = first.pid() as number;
  await first.stop();
  expect(liveProcess(pid)).toBeNull();
  expect(first.pid()).toBeNull();
  expect(await query(await start(), 'select a from t')).toEqual([{ a: '1' }]);
});

test.runIf(asRoot)(
  'root creates a cluster in the data directory of a user as that user, if that has an account',
  async () => {
    const daemon = 1;
    for (const [name, uid] of Object.entries({ ofUser: daemon, ofNobody: 65534, ofUnknown: 4_000_000 })) {
      const dataDir = join(dir, name);
      mkdirSync(dataDir);
      chownSync(dataDir, uid, uid);
      expect(await query(await start(dataDir), 'select 1 as one')).toEqual([{ one: 1 }]);
      const isOfUser = ['postgres', 'postgres/data', 'postgres.log'].map(
        (path) => statSync(join(dataDir, path)).uid === uid,
      );
      expect([name, new Set(isOfUser)]).toEqual([name, new Set([uid === daemon])]);
    }
  },
);

test('after a kill -9 of the postmaster it restarts with all committed rows', async () => {
  const postgres = await startPrepared();
  await query(postgres, 'create table t (a int); insert into t values (1)');
  const pid = postgres.pid() as number;
  process.kill(pid, 'SIGKILL');
  await until(async () => (await query(postgres, 'select a from t').catch(() => [])).length === 1);
  expect(postgres.pid()).not.toBe(pid);
});

test('the orphan of a killed process is adopted, and restarted when it dies', async () => {
  const dataDir = await prepareDataDir();
  const orphan = await startAndDie(dataDir);
  expect(liveProcess(orphan)).not.toBeNull();
  const postgres = await start(dataDir);
  expect(postgres.pid()).toBe(orphan);
  process.kill(orphan, 'SIGKILL');
  await until(() => query(postgres, 'select 1').then(Boolean, () => false));
  expect(postgres.pid()).not.toBe(orphan);
});

test('stop terminates an adopted orphan', async () => {
  const dataDir = await prepareDataDir();
  const orphan = await startAndDie(dataDir);
  await (await start(dataDir)).stop();
  expect(liveProcess(orphan)).toBeNull();
});

test('a kill -9 of all processes with busy backends does not prevent the next start', async () => {
  const dataDir = await prepareDataDir();
  const orphan = await startAndDie(dataDir);
  const postgres = await start(dataDir);
  const busy = query(postgres, 'select pg_sleep(1) from generate_series(1, 5)').catch(() => []);
  await until(
    async () => (await query(postgres, `select from pg_stat_activity where wait_event = 'PgSleep'`)).length > 0,
  );
  process.kill(orphan, 'SIGKILL');
  const again = await start(dataDir);
  expect(await query(again, 'select 1 as one')).toEqual([{ one: 1 }]);
  await busy;
});

test('stale pid and lock files that name unrelated live processes are removed', async () => {
  const first = await startPrepared();
  await first.stop();
  const { host } = first.connection;
  const content = `${process.pid}\n${join(host, 'data')}\n1700000000\n5432\n${host}\n\n`;
  writeFileSync(join(host, 'data', 'postmaster.pid'), content);
  const { uid, gid } = statSync(host);
  const sleeper = spawn('sleep', ['600'], { stdio: 'ignore', ...(asRoot && { uid, gid }) });
  writeFileSync(join(host, '.s.PGSQL.5432.lock'), `${sleeper.pid}\n${join(host, 'data')}\n`);
  try {
    const second = await start();
    expect(second.pid()).not.toBe(process.pid);
    expect(await query(second, 'select 1 as one')).toEqual([{ one: 1 }]);
  } finally {
    sleeper.kill();
  }
});

test('the unfinished files of a killed first start are removed', async () => {
  const first = await startPrepared();
  await first.stop();
  const { host } = first.connection;
  rmSync(join(host, 'data'), { recursive: true });
  mkdirSync(join(host, 'data.new.4194999.1.abc', 'base'), { recursive: true });
  await start();
  expect(readdirSync(host).filter((name) => name.startsWith('data'))).toEqual(['data']);
});

test('two concurrent first starts share one server, and stop leaves it running while the other has clients', async () => {
  const [one, two] = await Promise.all([start(), start()]);
  expect(one.pid()).toBe(two.pid());
  const client = new pg.Client({ connectionString: two.url });
  client.on('error', () => undefined);
  await client.connect();
  await one.stop({ onlyIfUnused: true });
  expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  await client.end();
  const pid = two.pid() as number;
  await two.stop({ onlyIfUnused: true });
  expect(liveProcess(pid)).toBeNull();
});

test('after repeated crashes two supervisors agree on one server each time', async () => {
  const one = await startPrepared();
  const two = await start();
  for (let round = 0; round < 3; round++) {
    const pid = one.pid() as number;
    process.kill(pid, 'SIGKILL');
    await until(() => one.pid() !== null && one.pid() !== pid && one.pid() === two.pid());
    await until(() => query(two, 'select 1').then(Boolean, () => false));
  }
});

test('a server that another process stops during the start is started again', async () => {
  const first = await startPrepared();
  await first.stop();
  const logFile = join(dir, 'data', 'postgres.log');
  const before = statSync(logFile).size;
  const starting = start();
  // From now on SIGINT is an orderly stop.
  while (!readFileSync(logFile, 'utf8').slice(before).includes('starting PostgreSQL')) await sleep(1);
  process.kill(parseInt(readFileSync(join(dir, 'data/postgres/data/postmaster.pid'), 'utf8'), 10), 'SIGINT');
  expect(await query(await starting, 'select 1 as one')).toEqual([{ one: 1 }]);
});

test('a path that is too long for a socket, with a comma and a space, works', async () => {
  const dataDir = join(dir, 'a, b'.padEnd(120, 'c'));
  const postgres = await start(dataDir);
  expect(postgres.connection.host.length).toBeLessThan(80);
  expect(statSync(postgres.connection.host).mode & 0o777).toBe(0o700);
  expect(await query(postgres, 'select 1 as one')).toEqual([{ one: 1 }]);
  const again = await start(dataDir);
  expect(again.pid()).toBe(postgres.pid());
});

test('the error of a failed start contains the log of PostgreSQL', async () => {
  const first = await startPrepared();
  await first.stop();
  writeFileSync(join(first.connection.host, 'data', 'PG_VERSION'), '9\n');
  await expect(startEmbeddedPostgres({ dataDir: join(dir, 'data'), log })).rejects.toThrow(
    /postgres exited[^]*database files are incompatible with server/,
  );
});

test('a directory that another process creates first is kept', async () => {
  const target = join(dir, 'target');
  await createAtomically(target, async (unfinished) => {
    mkdirSync(unfinished);
    mkdirSync(target);
    writeFileSync(join(target, 'theirs'), '');
  });
  expect(readdirSync(dir)).toEqual(['target']);
  expect(readdirSync(target)).toEqual(['theirs']);
});

test.runIf(asRoot)('under a directory that only root may enter, the cluster is in /var/lib/cloudyard', async () => {
  chmodSync(dir, 0o700);
  const dataDir = join(dir, 'data');
  const first = await start(dataDir);
  expect(lstatSync(join(dataDir, 'postgres')).isSymbolicLink()).toBe(true);
  expect(dirname(first.connection.host)).toBe('/var/lib/cloudyard/clusters');
  await query(first, 'create table t (a int)');
  await first.stop();
  // Whether it may be entered is decided once.
  chmodSync(dir, 0o755);
  expect(await query(await start(dataDir), 'select a from t')).toEqual([]);
});

test.runIf(asRoot)(
  'a cluster that its account can no longer enter is an error, and is not replaced by an empty one',
  async () => {
    await (await startPrepared()).stop();
    chmodSync(dir, 0o700);
    await expect(startEmbeddedPostgres({ dataDir: join(dir, 'data'), log })).rejects.toThrow(
      'cannot enter a directory above',
    );
  },
);

test.runIf(asRoot)(
  'binaries that the account cannot read are copied once, completely and with their links',
  async () => {
    const account = { uid: 65534, gid: 65534 };
    const native = join(dir, 'private', 'native');
    cpSync(dirname(findBinaries()), dirname(native), {
      recursive: true,
      filter: (path) => !lstatSync(path).isSymbolicLink(),
    });
    chmodSync(dirname(native), 0o700);
    chmodSync(join(native, 'lib'), 0o700);
    const copy = await placeBinaries(native, account, '/unused', join(dir, 'system'));
    expect(basename(copy)).toMatch(/^postgresql-18/);
    expect(existsSync(join(copy, 'lib', 'libpq.so.5'))).toBe(true);
    expect(existsSync(join(native, 'lib', 'libpq.so.5'))).toBe(true);
    const child = spawn(join(copy, 'bin', 'postgres'), ['--version'], { ...account, cwd: '/', stdio: 'ignore' });
    expect(await once(child, 'exit')).toEqual([0, null]);
    const made = statSync(copy).mtimeMs;
    expect(await placeBinaries(native, account, '/unused', join(dir, 'system'))).toBe(copy);
    expect(statSync(copy).mtimeMs).toBe(made);
    expect(readFileSync(join(copy, 'pg-symlinks.json')).length).toBeGreaterThan(0);
  },
);

test('SIGTERM to PostgreSQL alone restarts it, although clients stay connected', async () => {
  const postgres = await startPrepared();
  const client = new pg.Client({ connectionString: postgres.url });
  const ended = new Promise<void>((resolve) => client.once('end', resolve));
  client.on('error', () => undefined);
  await client.connect();
  const pid = postgres.pid()!;
  process.kill(pid, 'SIGTERM');
  await ended;
  await until(() => postgres.pid() !== null && postgres.pid() !== pid);
  await until(() =>
    query(postgres, 'select 1 as one').then(
      () => true,
      () => false,
    ),
  );
  expect(await query(postgres, 'select 1 as one')).toEqual([{ one: 1 }]);
});

test('a server without free connections is adopted, and not ended', async () => {
  const first = await startPrepared();
  const pid = first.pid();
  const clients: pg.Client[] = [];
  // Other connections may end meanwhile, so it tries again.
  for (let refusals = 0; refusals < 5; ) {
    const client = new pg.Client({ connectionString: first.url });
    client.on('error', () => undefined);
    await client.connect().then(
      () => clients.push(client),
      () => (refusals += 1),
    );
    if (refusals > 0) await sleep(100);
  }
  // It tries for 30 s, which pass in one.
  vi.useFakeTimers({ toFake: ['performance'] });
  const passing = setInterval(() => vi.advanceTimersByTime(1000), 30);
  try {
    await expect(start()).rejects.toMatchObject({ code: '53300' });
  } finally {
    clearInterval(passing);
    vi.useRealTimers();
  }
  await Promise.all(clients.map((client) => client.end()));
  expect([first.pid(), await query(first, 'select 1 as one')]).toEqual([pid, [{ one: 1 }]]);
});

test('a server whose socket was removed is started again', async () => {
  const postgres = await startPrepared();
  await query(postgres, 'create table t (a text); insert into t values (1)');
  const { host, port } = postgres.connection;
  rmSync(join(host, `.s.PGSQL.${port}`));
  await expect(query(postgres, 'select from t')).rejects.toThrow('ENOENT');
  await until(() =>
    query(postgres, 'select from t').then(
      (rows) => rows.length === 1,
      () => false,
    ),
  );
});

test('a removed socket directory of another TMPDIR is created again, private and of the account of the cluster', () => {
  const host = join(tmpdir(), basename(dir).replace('test', 'socket'));
  onTestFinished(() => rmSync(host, { recursive: true }));
  const account = asRoot ? { uid: 1, gid: 1 } : null;
  ensureSocketDir(host, { dir, account });
  const { mode, uid } = statSync(host);
  expect([mode & 0o777, uid]).toEqual([0o700, account?.uid ?? process.getuid?.()]);
});

test.runIf(asRoot)('root creates no socket directory where the account of the cluster may not', () => {
  const host = join(dir, 'socket');
  expect(() => ensureSocketDir(host, { dir, account: { uid: 1, gid: 1 } })).toThrow('Permission denied');
  expect(existsSync(host)).toBe(false);
});
