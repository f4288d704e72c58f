/** Access of other accounts on the host to the embedded PostgreSQL: its socket, files, log and account. */
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { root } from '../../src/platform/program-files.ts';
import { findBinaries } from '../../src/platform/embedded-postgres-places.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/platform/embedded-postgres.ts';
import { silentLogger } from '../../src/platform/log.ts';
import { copyPreparedCluster } from '../prepared-cluster.ts';
import { query } from '../processes.ts';
import { until } from '../until.ts';
import { requires, skipReason } from '../requires.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 180_000 });

const nobody = 65534;
const account = 'cloudyard-postgres';

let dir: string;
let dataDir: string;
let started: EmbeddedPostgres[];

beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), 'cloudyard-access-')));
  chmodSync(dir, 0o755);
  dataDir = join(dir, 'data');
  started = [];
});
afterEach(async () => {
  await Promise.all(started.map((postgres) => postgres.stop()));
  rmSync(dir, { recursive: true, force: true });
});

/** `isFirst`: with initdb, which takes most of the CPU time of a start. Otherwise the cluster exists. */
async function start({ isFirst = false } = {}): Promise<EmbeddedPostgres> {
  if (!isFirst && !existsSync(dataDir)) {
    mkdirSync(dataDir);
    await copyPreparedCluster(dataDir);
  }
  const postgres = await startEmbeddedPostgres({ dataDir, log: silentLogger });
  started.push(postgres);
  return postgres;
}

describe.skipIf(!requires('root'))(skipReason('root') ?? 'the embedded PostgreSQL of root', () => {
  it('accepts root and refuses other accounts that reach its socket', async () => {
    const postgres = await start({ isFirst: true });
    expect(await query(postgres.connection, 'select current_user as role')).toEqual([{ role: 'cloudyard' }]);
    expect(connectAs(postgres, nobody)).toBe('unreachable');
    openSocket(postgres);
    const { uid: own } = accountOf(account);
    for (const uid of [nobody, 33, own]) {
      expect(connectAs(postgres, uid)).toMatch(/^refused: .*(Peer authentication failed for user "cloudyard")/);
    }
    expect(connectAs(postgres, nobody, 'postgres')).toMatch(/^refused: .*no pg_hba.conf entry/);
    expect(connectAs(postgres, 0)).toBe('accepted');
  });

  it('restricts access again after an operator opened the socket and the authentication rules', async () => {
    const first = await start();
    await query(first.connection, 'create table t as select 1 as one');
    await first.stop();
    const files = ['pg_hba.conf', 'pg_ident.conf'].map((name) => join(first.connection.host, 'data', name));
    writeFileSync(files[0]!, 'local all all trust\nhost all all 127.0.0.1/32 trust\n');
    writeFileSync(files[1]!, 'cloudyard /.* cloudyard\n');
    const second = await start();
    openSocket(second);
    expect(connectAs(second, nobody)).toMatch(/^refused: .*Peer authentication failed/);
    expect(await query(second.connection, 'select one from t')).toEqual([{ one: 1 }]);
    const { uid } = accountOf(account);
    for (const file of files) expect([statSync(file).uid, statSync(file).mode & 0o777]).toEqual([uid, 0o600]);
  });

  it('does not follow links of its account when root writes', async () => {
    const first = await start();
    await first.stop();
    const file = join(first.connection.host, 'data', 'pg_hba.conf');
    const victim = join(dir, 'victim');
    writeFileSync(victim, 'precious', { mode: 0o600 });
    rmSync(file);
    symlinkSync(victim, file);
    await start();
    expect(readFileSync(victim, 'utf8')).toBe('precious');
    expect(readFileSync(file, 'utf8')).toMatch(/peer map=cloudyard/);
  });

  it('runs as a separate account that cannot log in and has no other group', async () => {
    const postgres = await start();
    const { uid, gid, home, shell } = accountOf(account);
    expect([home, shell]).toEqual(['/nonexistent', expect.stringMatching(/nologin|false/)]);
    const status = readFileSync(`/proc/${postgres.pid()}/status`, 'utf8');
    expect(status).toMatch(new RegExp(`^Uid:\\t${uid}\\t${uid}\\t${uid}\\t${uid}$`, 'm'));
    expect(status).toMatch(new RegExp(`^Gid:\\t${gid}\\t${gid}\\t${gid}\\t${gid}$`, 'm'));
    expect(status).toMatch(/^Groups:[ \t]*$/m);
    const names = (file: string, id: number) =>
      readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line.includes(account) || line.split(':')[2] === String(id))
        .map((line) => line.split(':')[0]);
    const shared = [...names('/etc/passwd', uid), ...names('/etc/group', gid)];
    expect(new Set(shared)).toEqual(new Set([account]));
  });

  it.each(['nobody', 'postgres'])('adopts a cluster of %s without files that were linked into it', async (name) => {
    const first = await start();
    await query(first.connection, 'create table t as select 1 as one');
    await first.stop();
    const { host } = first.connection;
    const [foreign, link] = [join(dir, 'foreign'), join(host, 'data', 'linked')];
    const owner = name === 'postgres' && !accountExists(name) ? { uid: 33, gid: 33 } : accountOf(name);
    symlinkSync(foreign, `${link}-softly`);
    execFileSync('chown', ['-R', '-h', `${owner.uid}:${owner.gid}`, host]);
    writeFileSync(foreign, 'of root');
    linkSync(foreign, link);
    const second = await start();
    const { uid } = accountOf(account);
    expect(uidOf(second.pid()!)).toBe(uid);
    expect(await query(second.connection, 'select one from t')).toEqual([{ one: 1 }]);
    expect(statSync(foreign).uid).toBe(0);
    rmSync(link);
    expect(execFileSync('find', [host, '!', '-uid', String(uid)], { encoding: 'utf8' })).toBe('');
  });

  it('runs as the owner of the data directory and refuses other accounts', async () => {
    const first = await start();
    await first.stop();
    const user = 33;
    execFileSync('chown', ['-R', `${user}:${user}`, dataDir]);
    const second = await start();
    expect(uidOf(second.pid()!)).toBe(user);
    openSocket(second);
    expect(connectAs(second, nobody)).toMatch(/^refused: .*Peer authentication failed/);
    expect(connectAs(second, 0)).toBe('accepted');
  });

  it('refuses a server that still runs as nobody and reports how to stop it', async () => {
    const first = await start();
    await first.stop();
    const { host } = first.connection;
    const pgData = join(host, 'data');
    execFileSync('chown', ['-R', `${nobody}:${nobody}`, host]);
    const program = execFileSync('readlink', ['-f', join(await copyPrograms(), 'bin', 'postgres')], {
      encoding: 'utf8',
    });
    const old = spawn(program.trim(), ['-D', pgData, '-k', host, '-c', 'listen_addresses='], {
      uid: nobody,
      gid: nobody,
      cwd: pgData,
      stdio: 'ignore',
    });
    const ended = new Promise<void>((resolve) => old.once('exit', () => resolve()));
    await until(() => /\d/.test(quietly(() => readFileSync(join(pgData, 'postmaster.pid'), 'utf8'))), 30, 'a pid file');
    try {
      const refusal = await start().catch((error: Error) => error.message);
      expect(refusal).toMatch(
        new RegExp(
          `PostgreSQL on ${host} runs as uid ${nobody}.* root runs it as ${account}\\..* kill -INT ${old.pid}$`,
        ),
      );
    } finally {
      process.kill(old.pid!, 'SIGINT');
      await ended;
    }
    expect(uidOf((await start()).pid()!)).toBe(accountOf(account).uid);
  });

  it('logs no statements or parameters, and only root can read the log', async () => {
    const logFile = join(dataDir, 'postgres.log');
    // Without the tables of a server.
    const first = await start({ isFirst: true });
    await first.stop();
    chmodSync(logFile, 0o644);
    const postgres = await start();
    const secret = randomBytes(12).toString('hex');
    await provokeErrors(postgres, secret);
    // PostgreSQL writes this line after the client has its error.
    await until(() => readFileSync(logFile, 'utf8').includes('was terminated by signal'), 30, 'the log of the crash');
    const log = readFileSync(logFile, 'utf8');
    expect(log).toContain('division by zero');
    expect(log).toContain('violates check constraint');
    expect(log).toContain('deadlock detected');
    expect(log).toMatch(/ 22012 .*ERROR/);
    expect(log.split('\n').filter((line) => line.includes(secret))).toEqual([]);
    expect([statSync(logFile).uid, statSync(logFile).mode & 0o777]).toEqual([0, 0o600]);
  });
});

describe.skipIf(!requires('root'))(skipReason('root') ?? 'the embedded PostgreSQL of an ordinary user', () => {
  it('runs as that user, accepts the user and root, and refuses other accounts that reach its socket', async () => {
    const user = 33;
    chownSync(dir, user, user);
    const child = startAs(user);
    try {
      await until(() => child.output().includes('"connection"'), 60, 'a start as a user');
      const postgres = JSON.parse(child.output()) as Pick<EmbeddedPostgres, 'connection'> & { pid: number };
      expect(uidOf(postgres.pid)).toBe(user);
      expect(connectAs(postgres, nobody)).toBe('unreachable');
      openSocket(postgres);
      expect(connectAs(postgres, nobody)).toMatch(/^refused: .*Peer authentication failed/);
      expect([connectAs(postgres, user), connectAs(postgres, 0)]).toEqual(['accepted', 'accepted']);
      const log = statSync(join(dataDir, 'postgres.log'));
      expect([log.uid, log.mode & 0o777]).toEqual([user, 0o600]);
    } finally {
      await child.end();
    }
  });
});

/** Starts the embedded PostgreSQL of `dataDir` as a user, with the checkout where that user can read it. */
function startAs(uid: number): { output(): string; end(): Promise<void> } {
  const checkout = join(dir, 'checkout');
  mkdirSync(checkout);
  const script = `
    import { startEmbeddedPostgres } from '${checkout}/src/platform/embedded-postgres.ts';
    const log = { info() {}, warn() {}, error() {} };
    const postgres = await startEmbeddedPostgres({ dataDir: '${dataDir}', log });
    console.log(JSON.stringify({ connection: postgres.connection, pid: postgres.pid() }));
    process.stdin.on('end', () => postgres.stop()).resume();`;
  writeFileSync(join(dir, 'start.mjs'), script);
  const asUser = `exec setpriv --reuid ${uid} --regid ${uid} --clear-groups`;
  const command = `mount --bind '${root}' '${checkout}' && ${asUser} '${checkout}/node_modules/node/bin/node' '${dir}/start.mjs'`;
  const child = spawn('unshare', ['--mount', 'sh', '-c', command], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  return {
    output: () => output,
    end() {
      child.stdin.end();
      return ended;
    },
  };
}

/** Causes PostgreSQL to log data of clients: statements, parameters, rows, contexts, crashes of backends. */
async function provokeErrors(postgres: EmbeddedPostgres, secret: string): Promise<void> {
  const fails = (text: string, values?: unknown[]) =>
    expect(query(postgres.connection, text, values)).rejects.toThrow();
  await query(postgres.connection, 'create table secrets (id int, content text check (length(content) < 9))');
  await query(postgres.connection, 'insert into secrets (id) values (1), (2)');
  await fails(`select '${secret}', 1 / 0`);
  await fails('select $1::text, 1 / $2::int', [secret, 0]);
  await fails('insert into secrets values (3, $1)', [secret]);
  await fails(`do $$ begin perform '${secret}', 1 / 0; end $$`);
  // Deadlock: each transaction waits for the row that the other one locked.
  const [one, two] = [newClient(postgres), newClient(postgres)];
  await Promise.all([one.connect(), two.connect()]);
  const update = (id: number) => `update secrets set content = null where id = ${id} -- ${secret}`;
  await one.query(`begin; ${update(1)}`);
  await two.query(`begin; ${update(2)}`);
  const outcomes = await Promise.allSettled([one.query(update(2)), two.query(update(1))]);
  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  await Promise.all([one.end(), two.end()]);
  const dying = newClient(postgres);
  await dying.connect();
  const { rows } = await dying.query('select pg_backend_pid() as pid');
  const sleeping = dying.query(`select pg_sleep(600), '${secret}'`).catch(() => undefined);
  await until(
    async () => (await query(postgres.connection, `select from pg_stat_activity where wait_event = 'PgSleep'`)).length,
    20,
    'sleep',
  );
  process.kill(rows[0].pid, 'SIGSEGV');
  await sleeping;
  await until(
    () =>
      query(postgres.connection, 'select 1').then(
        () => true,
        () => false,
      ),
    30,
    'PostgreSQL again',
  );
}

function newClient({ url }: EmbeddedPostgres): pg.Client {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  return client;
}

/** Opens the socket to all accounts, as an operator or a faulty program could. */
function openSocket({ connection: { host } }: Pick<EmbeddedPostgres, 'connection'>): void {
  chmodSync(host, 0o755);
  chmodSync(join(host, '.s.PGSQL.5432'), 0o777);
}

/** Starts a connection as a local account. Returns the reply to the first message of the protocol. */
function connectAs(
  { connection: { host } }: Pick<EmbeddedPostgres, 'connection'>,
  uid: number,
  role = 'cloudyard',
): string {
  const script = `
    my $socket = IO::Socket::UNIX->new(Peer => $ARGV[0]) or print("unreachable") && exit;
    my $parameters = "user\\0$ARGV[1]\\0database\\0postgres\\0\\0";
    print $socket pack("NN", 8 + length($parameters), 196608) . $parameters;
    $socket->flush;
    sysread($socket, my $answer, 4096);
    my ($type, $length, $what) = unpack("aNN", $answer);
    print $type eq "R" && $what == 0 ? "accepted" : $type eq "R" ? "authentication method $what required" : "refused: $answer";`;
  const asThem = ['--reuid', String(uid), '--regid', String(uid), '--clear-groups'];
  const perl = ['perl', '-MIO::Socket::UNIX', '-e', script, join(host, '.s.PGSQL.5432'), role];
  return execFileSync('setpriv', [...asThem, ...perl], { encoding: 'latin1' }).replaceAll('\0', ' ');
}

function accountExists(name: string): boolean {
  return readFileSync('/etc/passwd', 'utf8').includes(`\n${name}:`);
}

function accountOf(name: string): { uid: number; gid: number; home: string; shell: string } {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((each) => each.startsWith(`${name}:`));
  const [, , uid, gid, , home = '', shell = ''] = line!.split(':');
  return { uid: Number(uid), gid: Number(gid), home, shell };
}

/** The user id of a process. */
function uidOf(pid: number): number {
  return statSync(`/proc/${pid}`).uid;
}

/** Copies the server's programs so that every account can run them. */
async function copyPrograms(): Promise<string> {
  const copy = join(dir, 'native');
  execFileSync('cp', ['-a', findBinaries(), copy]);
  execFileSync('chmod', ['-R', 'a+rX', copy]);
  return copy;
}

function quietly(work: () => string): string {
  try {
    return work();
  } catch {
    return '';
  }
}
