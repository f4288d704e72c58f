/**
 * The embedded PostgreSQL: server binaries from npm, one cluster for each data directory, reached over a unix socket only.
 * The server accepts connections of root and of its user (embedded-postgres-access.ts).
 *
 * Invariants:
 * - `fsync` stays on: killing any process at any time loses no acknowledged commit.
 * - `<dataDir>/postgres/data` is created under a temporary name and renamed, so it is complete or absent.
 * - A process that finds no other user stops the server, and holds the users' lock meanwhile: a process that starts at that
 *   moment waits, and then starts the server again.
 * - One postmaster for each cluster. A live one that `postmaster.pid` names is adopted (the orphan of a killed Cloudyard, or
 *   the server of another of its processes); any other pid file is removed (daemon.ts).
 *
 * Failure modes: `startEmbeddedPostgres` rejects with an error about the directories, or with the end of PostgreSQL's log,
 * `<dataDir>/postgres.log`. Later crashes are logged and PostgreSQL is restarted; clients lose their connections.
 */
import { existsSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { runChild } from './child-process.ts';
import { type Daemon, superviseDaemon } from './daemon.ts';
import { createDataDirectory } from './data-directory.ts';
import type { Logger } from './log.ts';
import { processIn } from './running-processes.ts';
import { createLog, restrictConnections } from './embedded-postgres-access.ts';
import { isPostmaster, isStopping, socketDirOfRunning } from './embedded-postgres-pid-file.ts';
import {
  type Cluster,
  findBinaries,
  createAtomically,
  ensureSocketDir,
  placeBinaries,
  placeCluster,
  placeSocket,
} from './embedded-postgres-places.ts';
import { withClient } from './with-client.ts';

export interface EmbeddedPostgres {
  /** `host` is the directory of the unix socket. */
  connection: { host: string; port: number; user: string; database: string };
  url: string;
  /** Null while the server is down, and where another process supervises it. */
  pid(): number | null;
  /** Close your own connections first. `onlyIfUnused` leaves the server running while other clients are connected. */
  stop(options?: { onlyIfUnused?: boolean }): Promise<void>;
}

const NAME = 'cloudyard';
/** Part of the name of the socket file. */
const PORT = 5432;
const SOCKET_FILE = `.s.PGSQL.${PORT}`;
const LINGERING_BACKENDS_MS = 10_000;
/**
 * Failures of a start that do not last. PostgreSQL exits with 0 only after an orderly stop. Its file exists if another process has
 * started it at the same moment.
 */
const passing =
  /shared memory block .* is still in use|postgres exited \(code 0\)|lock file "postmaster.pid" already exists/;
const DISCONNECT_MS = 1000;
const SHUTDOWN_POLL_MS = 1000;
const REGISTER_TIMEOUT_MS = 30_000;
/** An advisory lock in the database `postgres`; every user of the server holds it shared. */
const USERS = 0x636c6f75;
/** SQLSTATE */
const tooManyConnections = '53300';
const INITDB_FLAGS = [
  `--username=${NAME}`,
  '--encoding=UTF8',
  '--locale-provider=builtin',
  '--builtin-locale=C.UTF-8',
  '--locale=C',
  '--auth-local=peer',
  '--auth-host=reject',
];
const SETTINGS = {
  listen_addresses: '',
  shared_buffers: '64MB',
  max_connections: '100',
  timezone: 'UTC',
  // The data is in memory or on flash. With the default of 4, statements that are planned while a table is small scan it, and
  // keep the plan while it grows.
  random_page_cost: '1.1',
  log_checkpoints: 'off',
  // Recovery after a crash syncs the file system once, not each of 1,300 files: 0.1 instead of 1.5 s.
  recovery_init_sync_method: 'syncfs',
  // A second barrier: the directory is private, and the server checks the uid of the peer.
  unix_socket_permissions: '0700',
  // Statements, details and contexts of errors contain data of clients; SQLSTATE and application identify the error.
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
  log_line_prefix: '%m [%p] %e %q%a ',
};

/**
 * Starts PostgreSQL on the data directory, or uses the one that another process has started there. Creates the cluster
 * at the first start. `settings` replace those of the server, for tests. @throws if it does not start
 */
export async function startEmbeddedPostgres(given: {
  dataDir: string;
  log: Logger;
  settings?: Record<string, string>;
}): Promise<EmbeddedPostgres> {
  const { log, settings = {} } = given;
  createDataDirectory(given.dataDir);
  const dataDir = realpathSync(given.dataDir);
  const cluster = placeCluster(dataDir);
  const binaries = await placeBinaries(findBinaries(), cluster.account, dataDir);
  const pgData = join(cluster.dir, 'data');
  if (!existsSync(pgData)) {
    await createAtomically(pgData, (unfinished) => initdb(binaries, unfinished, cluster));
    log.info({ dir: pgData }, 'postgres cluster created');
  }
  restrictConnections(pgData, cluster.account);
  const host = socketDirOfRunning(pgData) ?? placeSocket(cluster, SOCKET_FILE);
  const logFile = join(dataDir, 'postgres.log');
  createLog(logFile, cluster.account);
  const server = { binaries, pgData, host, logFile, cluster, log, settings: { ...SETTINGS, ...settings } };
  const daemon = await superviseOnceFree(() => supervisePostgres(server));
  const watch = setInterval(() => endSmartShutdown(pgData, daemon, log), SHUTDOWN_POLL_MS).unref();
  const use = await registerUse(host).catch(async (err: unknown) => {
    await daemon.release();
    throw err;
  });
  const postgres: EmbeddedPostgres = {
    ...addressOf(host),
    pid: daemon.pid,
    stop: async ({ onlyIfUnused = false } = {}) => {
      clearInterval(watch);
      await use.end();
      if (!onlyIfUnused) return daemon.stop();
      if (await whenUnused(host, daemon.stop)) return;
      log.info({ daemonPid: daemon.pid() }, 'postgres keeps running for its other clients');
      await daemon.release();
    },
  };
  await createDatabase(host).catch(async (err: unknown) => {
    await postgres.stop({ onlyIfUnused: true });
    throw err;
  });
  return postgres;
}

/**
 * Uses the server that another process supervises for longer than this one runs. A process that is bound to a processor must
 * not start it, because PostgreSQL would be bound as well.
 */
export async function joinEmbeddedPostgres({ dataDir }: { dataDir: string }): Promise<EmbeddedPostgres> {
  const cluster = placeCluster(realpathSync(dataDir));
  const host = socketDirOfRunning(join(cluster.dir, 'data')) ?? placeSocket(cluster, SOCKET_FILE);
  const use = await registerUse(host);
  return { ...addressOf(host), pid: () => null, stop: use.end };
}

/** The connection to the server that runs on a data directory; null if none does. Nothing is started or created. */
export function connectionToRunning(dataDir: string): EmbeddedPostgres['connection'] | null {
  const cluster = join(dataDir, 'postgres');
  const host = existsSync(cluster) ? socketDirOfRunning(join(realpathSync(cluster), 'data')) : null;
  return host === null ? null : addressOf(host).connection;
}

function addressOf(host: string): Pick<EmbeddedPostgres, 'connection' | 'url'> {
  return {
    connection: { host, port: PORT, user: NAME, database: NAME },
    url: `postgres://${NAME}@${encodeURIComponent(host)}:${PORT}/${NAME}`,
  };
}

// The server.

interface Server {
  binaries: string;
  pgData: string;
  host: string;
  logFile: string;
  cluster: Cluster;
  log: Logger;
  settings: Record<string, string>;
}

function supervisePostgres(server: Server): Promise<Daemon> {
  const { binaries, pgData, host, logFile, cluster, log } = server;
  const settings = Object.entries(server.settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  return superviseDaemon({
    name: 'postgres',
    command: {
      file: join(binaries, 'bin', 'postgres'),
      args: ['-D', pgData, '-p', String(PORT), '-k', host, ...settings],
      cwd: pgData,
      ...cluster.account,
    },
    pidFile: join(pgData, 'postmaster.pid'),
    writesPidFile: true,
    matches: (commandLine) => isPostmaster(commandLine, pgData),
    probe: () => withClient(connectionTo(host), async () => undefined).catch(unlessFull),
    socket: join(host, SOCKET_FILE),
    // Recovery after a crash replays up to max_wal_size.
    startTimeout: 120,
    // PostgreSQL writes a checkpoint before it exits.
    stopTimeout: 60,
    logFile,
    stopSignal: 'SIGINT',
    async beforeStart() {
      if (!existsSync(host)) ensureSocketDir(host, cluster);
      removeStaleSocketLock(host, pgData);
    },
    log,
  });
}

/** A server that has all its connections responds, and ending it would end them. */
function unlessFull(error: { code?: string }): void {
  if (error.code !== tooManyConnections) throw error;
}

/**
 * After SIGTERM, PostgreSQL waits for its clients and refuses new ones. The clients are pools, which never end, so a SIGTERM of
 * another sender would stop all requests permanently. SIGINT disconnects the clients, and the supervision starts it again.
 */
function endSmartShutdown(pgData: string, daemon: Daemon, log: Logger): void {
  if (daemon.pid() === null || !isStopping(pgData)) return;
  log.warn({ daemonPid: daemon.pid() }, 'postgres got SIGTERM and waits for its clients; restarting it');
  daemon.signal('SIGINT');
}

async function initdb(binaries: string, pgData: string, { dir, account }: Cluster): Promise<void> {
  await runChild(join(binaries, 'bin', 'initdb'), ['-D', pgData, ...INITDB_FLAGS], {
    cwd: dir,
    env: { LC_ALL: 'C' },
    ...account,
  });
}

/** PostgreSQL also refuses to start when this file names any live process of its account. */
function removeStaleSocketLock(host: string, pgData: string): void {
  const lock = join(host, `${SOCKET_FILE}.lock`);
  if (!isPostmaster(processIn(lock)?.commandLine ?? '', pgData)) rmSync(lock, { force: true });
}

/**
 * After a kill -9 of the postmaster its backends hold the shared memory until they notice. And another process, which finds
 * no user, may stop the server before this one is registered as a user.
 */
async function superviseOnceFree(supervise: () => Promise<Daemon>): Promise<Daemon> {
  const deadline = performance.now() + LINGERING_BACKENDS_MS;
  for (;;) {
    try {
      return await supervise();
    } catch (err) {
      if (performance.now() > deadline || !passing.test(String(err))) throw err;
      await sleep(200);
    }
  }
}

const connectionTo = (host: string): pg.ClientConfig => {
  return { host, port: PORT, user: NAME, database: 'postgres', connectionTimeoutMillis: 5000 };
};

async function createDatabase(host: string): Promise<void> {
  await withClient(connectionTo(host), async (client) => {
    const { rowCount } = await client.query('select from pg_database where datname = $1', [NAME]);
    if (rowCount) return;
    await client.query(`create database ${NAME}`).catch((err: { code?: string }) => {
      // Another process was faster: duplicate_database, or unique_violation in a race.
      if (err.code !== '42P04' && err.code !== '23505') throw err;
    });
  });
}

// The users of the server.

/**
 * Registers this process as a user until `end`: users hold the lock shared, and a process that stops the server holds it
 * exclusively. Retries for a while, because the last user may be stopping the server at this moment; the supervision then
 * starts it again.
 */
async function registerUse(host: string): Promise<{ end(): Promise<void> }> {
  let current: pg.Client | undefined;
  let ended = false;
  const register = async () => {
    const client = new pg.Client(connectionTo(host));
    // Errors show as rejections, or as its `end` event.
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.query('select pg_advisory_lock_shared($1)', [USERS]);
    } catch (err) {
      await client.end().catch(() => undefined);
      throw err;
    }
    current = client;
    client.once('end', () => {
      if (!ended) void persist(Number.POSITIVE_INFINITY);
    });
  };
  const persist = async (giveUp: number) => {
    while (!ended) {
      try {
        return await register();
      } catch (err) {
        if (performance.now() > giveUp) throw err;
        await sleep(100, undefined, { ref: giveUp !== Number.POSITIVE_INFINITY });
      }
    }
  };
  await persist(performance.now() + REGISTER_TIMEOUT_MS);
  return {
    async end() {
      ended = true;
      await current?.end().catch(() => undefined);
    },
  };
}

/** Stops the server if no other process uses it, under the exclusive lock. Returns false if one does. */
async function whenUnused(host: string, stop: () => Promise<void>): Promise<boolean> {
  try {
    return await withClient(connectionTo(host), async (client) => {
      const { rows } = await client.query('select pg_try_advisory_lock($1) as alone', [USERS]);
      if (!rows[0].alone || (await hasOthers(client))) return false;
      await stop();
      return true;
    });
  } catch (err) {
    // A server that is down has no users; one that is full or starting up has users or expects them.
    if (!['ENOENT', 'ECONNREFUSED'].includes((err as NodeJS.ErrnoException).code ?? '')) return false;
    await stop();
    return true;
  }
}

/** Polls for a while: a connection that was just closed is still listed for a moment. */
async function hasOthers(client: pg.Client): Promise<boolean> {
  const query = `select from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`;
  const giveUp = performance.now() + DISCONNECT_MS;
  while ((await client.query(query)).rowCount) {
    if (performance.now() > giveUp) return true;
    await sleep(20);
  }
  return false;
}
