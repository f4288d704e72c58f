/**
 * Cloudyard as real processes: one data directory, commands that run on it, and their daemons (PostgreSQL, NFS-Ganesha,
 * rpcbind, HAProxy). `cleanUp` ends every process by its id and leaves no mount and no loop device behind. It also runs when
 * the test process exits without having called it.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { freePort } from './free-port.ts';
import { runtimeFolder } from '../src/drivers/confined.ts';
import { egressTable } from '../src/drivers/egress-filter.ts';
import { layoutOf } from '../src/drivers/haproxy/layout.ts';
import { readOrEmpty } from '../src/platform/read-or-empty.ts';
import { descriptorsOf, liveProcess, pidsOfHost, processIn } from '../src/platform/running-processes.ts';
import { root } from '../src/platform/program-files.ts';
import { withClient } from '../src/platform/with-client.ts';
import { httpClient, type HttpClient } from './http-client.ts';
import { compileCache, pinnedNode, preloadsOf, serverScript } from './server-program.ts';
import { until } from './until.ts';

export const bootstrapToken = 'ci$secret-of-the-e2e-tests';

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface Running {
  pid: number;
  stdout(): string;
  stderr(): string;
  /** The JSON lines of its log so far. */
  log(): Record<string, unknown>[];
  ended: Promise<Ended>;
  signal(signal: NodeJS.Signals): void;
  /** Sends SIGKILL and waits until it is gone. */
  kill(): Promise<void>;
  /** Sends SIGINT and waits for the end. */
  stop(): Promise<Ended>;
}

export interface Yard extends HttpClient {
  /** A folder for files of the test, removed by `cleanUp`. */
  folder: string;
  dataDir: string;
  port: number;
  nfsPort: number;
  mountPort: number;
  /** Environment of every command, including `CLOUDYARD_…`. */
  env: Record<string, string>;
  /** Starts a long-running command and resolves when it is ready. @throws if it ends instead */
  start(args: string[], env?: Record<string, string>): Promise<Running>;
  /** Starts a command through bin/cloudyard.mjs, as users do. */
  startByBin(args: string[], env?: Record<string, string>): Promise<Running>;
  /** Starts a command through a file of the test in place of src/main/cloudyard.ts. */
  startFile(file: string, args: string[], env?: Record<string, string>, nodeFlags?: string[]): Promise<Running>;
  spawn(args: string[], env?: Record<string, string>): Running;
  /** Runs a command until it ends. */
  run(args: string[], env?: Record<string, string>): Promise<Ended>;
  /** Runs a query on the embedded PostgreSQL. */
  sql<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>;
  /** URL of the embedded PostgreSQL. */
  databaseUrl(): string;
  pids(): Record<'postgres' | 'ganesha' | 'rpcbind' | 'haproxy', number | null>;
  /** Paths of mounted shares. */
  mounts(): string[];
  loopDevices(): string[];
  cleanUp(): void;
}

const bin = join(root, 'bin', 'cloudyard.mjs');

/** Writes the shipped configuration with other addresses of load balancers. Returns the path of the regions file. */
function regionsWithOwnAddresses(folder: string): string {
  const [shipped, own] = [join(root, 'config'), join(folder, 'config')];
  cpSync(shipped, own, { recursive: true });
  const file = join(own, 'regions.yaml');
  writeFileSync(
    file,
    readFileSync(file, 'utf8').replace(/vip_range: .*/, `vip_range: 127.${randomInt(128, 255)}.0.0/16`),
  );
  return file;
}

/** For commands that open a yard: Ctrl-C ends its processes, too. */
export function exitOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
}

interface YardOptions {
  /** Without a database, as before the first start of a user. Default: false. */
  isEmpty?: boolean;
  /** Load balancers have other addresses than those of other Cloudyards on this host. Default: false. */
  ownAddresses?: boolean;
}

export async function openYard(
  settings: Record<string, string> = {},
  { isEmpty = false, ownAddresses = false }: YardOptions = {},
): Promise<Yard> {
  // As root, PostgreSQL runs as another account, which must be able to enter the folder.
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'cloudyard-e2e-')));
  chmodSync(folder, 0o755);
  const dataDir = join(folder, 'data');
  mkdirSync(dataDir);
  if (!isEmpty && !settings['DATABASE_URL']) {
    // Works in a test run only; commands open an empty yard.
    const { copyPreparedCluster } = await import('./prepared-cluster.ts');
    await copyPreparedCluster(dataDir);
  }
  const [port, nfsPort, mountPort] = [await freePort(), await freePort(), await freePort()];
  const env = {
    CLOUDYARD_DATA_DIR: dataDir,
    CLOUDYARD_PORT: String(port),
    CLOUDYARD_NFS_PORT: String(nfsPort),
    CLOUDYARD_NFS_MOUNT_PORT: String(mountPort),
    CLOUDYARD_BOOTSTRAP_TOKEN: bootstrapToken,
    CLOUDYARD_LOG_FORMAT: 'json',
    CLOUDYARD_CONSOLE: '0',
    // Tests of load balancers, volumes and registries select the real drivers.
    CLOUDYARD_LOAD_BALANCER_DRIVER: 'simulated',
    CLOUDYARD_VOLUME_DRIVER: 'simulated',
    CLOUDYARD_REGISTRY_DRIVER: 'simulated',
    ...(ownAddresses && { CLOUDYARD_REGIONS_FILE: regionsWithOwnAddresses(folder) }),
    ...settings,
  };
  const launch = (file: string, args: string[], own: Record<string, string> = {}, nodeFlags: string[] = []) =>
    watch(
      spawn(pinnedNode, [...nodeFlags, ...preloadsOf(file), file, ...args], {
        env: environment({ ...env, ...own }),
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    );
  const startReady = async (file: string, args: string[], own?: Record<string, string>, nodeFlags?: string[]) => {
    const running = launch(file, args, own, nodeFlags);
    await until(() => running.stdout().includes('Cloudyard is ready.') || !liveProcess(running.pid), 100, 'ready');
    if (running.stdout().includes('Cloudyard is ready.')) return running;
    const { code, stderr, stdout } = await running.ended;
    throw new Error(`${args.join(' ')} ended with ${code}: ${stderr}${stdout}`);
  };
  const shares = join(dataDir, 'file-shares');
  const balancers = layoutOf(dataDir);
  const cleanUp = () => removeYard(folder, dataDir);
  process.once('exit', cleanUp);
  return {
    ...httpClient(`http://127.0.0.1:${port}`, bootstrapToken),
    folder,
    dataDir,
    port,
    nfsPort,
    mountPort,
    env,
    start: (args, own) => startReady(serverScript, args, own),
    startByBin: (args, own) => startReady(bin, args, own),
    startFile: startReady,
    spawn: (args, own) => launch(serverScript, args, own),
    run: (args, own) => launch(serverScript, args, own).ended,
    sql: async (text, values) => query(postgresOf(dataDir), text, values),
    databaseUrl() {
      const { host, port: socket, user, database } = postgresOf(dataDir);
      return `postgres://${user}@${encodeURIComponent(host)}:${socket}/${database}`;
    },
    pids: () => ({
      postgres: livePid(postmasterFile(dataDir)),
      ganesha: livePid(join(shares, 'ganesha/runtime/state/ganesha.pid')),
      rpcbind: livePid(join(shares, 'ganesha/runtime/rpcbind.pid')),
      haproxy: livePid(join(balancers.haproxy, 'haproxy.pid')),
    }),
    mounts: () => mountsUnder(join(shares, 'mounts')),
    loopDevices: () => loopDevicesOf(dataDir).map(({ device }) => device),
    cleanUp() {
      process.off('exit', cleanUp);
      cleanUp();
    },
  };
}

/** The environment of this process without variables that change how Cloudyard runs. */
function environment(own: Record<string, string>): Record<string, string> {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(CLOUDYARD_|DATABASE_URL$|NODE_OPTIONS$|VITEST|TEST$|NODE_ENV$)/.test(name),
  );
  return { ...(Object.fromEntries(inherited) as Record<string, string>), ...compileCache, ...own };
}

function watch(child: ChildProcess): Running {
  let [stdout, stderr] = ['', ''];
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  return {
    pid: child.pid!,
    stdout: () => stdout,
    stderr: () => stderr,
    log: () =>
      `${stdout}\n${stderr}`
        .split('\n')
        .filter((line) => line.startsWith('{') && line.endsWith('}'))
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    ended,
    signal: (signal) => void child.kill(signal),
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
    async stop() {
      child.kill('SIGINT');
      return ended;
    },
  };
}

/** Runs one statement on a new connection. */
export function query<Row extends pg.QueryResultRow>(
  options: pg.ClientConfig,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  return withClient(options, async (client) => (await client.query<Row>(text, values)).rows);
}

function postmasterFile(dataDir: string): string {
  return join(dataDir, 'postgres', 'data', 'postmaster.pid');
}

/** Line 4 of the pid file is the port, line 5 the folder of the socket. */
function postgresOf(dataDir: string) {
  const [, , , port, host = ''] = readFileSync(postmasterFile(dataDir), 'utf8').split('\n');
  return { host, port: Number(port), user: 'cloudyard', database: 'cloudyard' };
}

function livePid(pidFile: string): number | null {
  const found = processIn(pidFile);
  return found && /postgres|ganesha\.nfsd|rpcbind|haproxy/.test(found.commandLine) ? found.pid : null;
}

function mountsUnder(folder: string): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((path) => path.startsWith(`${folder}/`));
}

function loopDevicesOf(dataDir: string): { device: string; file: string }[] {
  return readdirSync('/sys/block')
    .filter((name) => name.startsWith('loop'))
    .map((name) => ({ device: `/dev/${name}`, file: readOrEmpty(`/sys/block/${name}/loop/backing_file`).trim() }))
    .filter(({ file }) => file.startsWith(`${dataDir}/`));
}

/** Signals the server and its backends; `pid` is that of the server. */
export function signalPostgres(pid: number, signal: 'SIGSTOP' | 'SIGCONT'): void {
  const children = execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' });
  // Each process of PostgreSQL is a process group of its own.
  for (const each of [pid, ...children.trim().split('\n').map(Number)]) {
    try {
      process.kill(each, signal);
    } catch {
      // A backend whose client has left.
    }
  }
}

/** Pids of the processes of this folder: their environment or arguments name it, or they have one of its files open. */
export function processesOf(folder: string): number[] {
  const inFolder = `${folder}/`;
  const names = (pid: number) =>
    ['environ', 'cmdline'].some((file) => readOrEmpty(`/proc/${pid}/${file}`).includes(inFolder)) ||
    descriptorsOf(pid).some((target) => target.startsWith(inFolder));
  return pidsOfHost().filter((pid) => pid !== process.pid && names(pid));
}

function removeYard(folder: string, dataDir: string): void {
  const postgres = livePid(postmasterFile(dataDir));
  // Supervisors first, because they would restart the others. SIGQUIT makes PostgreSQL free its shared memory.
  const others = processesOf(folder).filter((pid) => pid !== postgres);
  for (const pid of others) send(pid, 'SIGKILL');
  if (postgres) send(postgres, 'SIGQUIT');
  waitUntilGone([...others, ...(postgres ? [postgres] : [])]);
  if (postgres) send(postgres, 'SIGKILL');
  quietly('nft', 'delete', 'table', 'inet', egressTable(dataDir));
  for (const path of mountsUnder(dataDir).reverse()) quietly('umount', '-l', path);
  for (const { device } of loopDevicesOf(dataDir)) quietly('losetup', '-d', device);
  for (const each of [folder, layoutOf(dataDir).sockets, runtimeFolder(join(dataDir, 'registries'))])
    rmSync(each, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has ended.
  }
}

function waitUntilGone(pids: number[]): void {
  const giveUp = Date.now() + 5000;
  const turn = new Int32Array(new SharedArrayBuffer(4));
  while (pids.some((pid) => liveProcess(pid)) && Date.now() < giveUp) Atomics.wait(turn, 0, 0, 20);
}

function quietly(file: string, ...args: string[]): void {
  try {
    execFileSync(file, args, { stdio: 'ignore' });
  } catch {
    // It is already removed.
  }
}
