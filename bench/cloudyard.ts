/** Runs the real server as a separate process with logging, as an operator would. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, openSync, closeSync, readFileSync, readSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../test/free-port.ts';
import type { ConnectionOptions } from '../src/platform/db.ts';
import type { Workplace } from './workplace.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const token = 'bench$bench-secret';
const startTimeoutMs = 60_000;
const stopTimeoutMs = 20_000;

export interface Cloudyard {
  url: string;
  headers: Record<string, string>;
  /** Pid of the server's Node process, not of npm or the launcher. */
  pid: number;
  /** Time from the command to the printed start table and a 200 response of /readyz. */
  readyAfterMs: number;
  database: ConnectionOptions;
  /** Its environment, including `CLOUDYARD_…`. */
  environment: Record<string, string>;
  /** @throws if the response is not 2xx */
  request(method: string, path: string, body?: unknown): Promise<any>;
  stop(): Promise<void>;
}

interface Launch {
  /** `serve` accepts requests without running jobs; `start` also runs a worker. */
  command: 'serve' | 'start';
  /** Starts through `npm start`, whose time then counts. */
  throughNpm?: boolean;
  /** In addition to the common settings. */
  settings?: Record<string, string>;
  /** Another checkout of this project, with its dependencies. Default: this one. */
  checkout?: string;
}

export async function startCloudyard(workplace: Workplace, launch: Launch): Promise<Cloudyard> {
  const dataDir = join(workplace.dir, 'data');
  const logFile = join(workplace.dir, 'server.log');
  mkdirSync(dataDir, { recursive: true });
  const port = await freePort();
  const settings = {
    CLOUDYARD_DATA_DIR: dataDir,
    CLOUDYARD_PORT: String(port),
    CLOUDYARD_BOOTSTRAP_TOKEN: token,
    CLOUDYARD_FILE_SHARE_DRIVER: 'simulated',
    CLOUDYARD_LOAD_BALANCER_DRIVER: 'simulated',
    CLOUDYARD_REGISTRY_DRIVER: 'simulated',
    CLOUDYARD_VOLUME_DRIVER: 'simulated',
    CLOUDYARD_LOG_FORMAT: 'json',
    CLOUDYARD_CONSOLE: '0',
    // Creates of one client are measured without a worker.
    CLOUDYARD_CLIENT_TASKS: '10000000',
    ...launch.settings,
  };
  const environment = withSettings(settings);
  const began = performance.now();
  const child = launchServer(launch, logFile, environment);
  const url = `http://127.0.0.1:${port}`;
  const stopped = stopOnce(child, logFile, dataDir);
  workplace.closing(stopped);
  await ready(url, child, logFile);
  const readyAfterMs = performance.now() - began;
  const pid = serverPid(logFile)!;
  const headers = { authorization: `apikey ${token}` };
  return {
    url,
    headers,
    pid,
    readyAfterMs,
    database: connectionOf(dataDir),
    environment,
    request: (method, path, body) => request(method, url + path, headers, body),
    stop: stopped,
  };
}

function launchServer({ command, throughNpm, checkout = root }: Launch, logFile: string, env: Record<string, string>) {
  const log = openSync(logFile, 'w');
  const npm = process.env.npm_execpath;
  const args = throughNpm && npm ? [npm, 'start'] : [join(checkout, 'bin', 'cloudyard.mjs'), command];
  // Detached, so that Ctrl-C does not reach it: the bench stops it.
  const child = spawn(process.execPath, args, { cwd: checkout, env, stdio: ['ignore', log, log], detached: true });
  closeSync(log);
  return child;
}

/** The environment of this process without settings of Cloudyard. */
export function withSettings(settings: Record<string, string>): Record<string, string> {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(CLOUDYARD_|DATABASE_URL$|npm_)/.test(name));
  return { ...(Object.fromEntries(inherited) as Record<string, string>), ...settings };
}

/** Polls every 5 ms, which is the precision of the result. */
async function ready(url: string, child: ChildProcess, logFile: string): Promise<void> {
  const deadline = performance.now() + startTimeoutMs;
  for (;;) {
    const log = readFileSync(logFile, 'utf8');
    if (child.exitCode !== null || performance.now() > deadline) throw new Error(`the server did not start: ${log}`);
    if (log.includes('Cloudyard is ready.') && (await isReady(url))) return;
    await sleep(5);
  }
}

async function isReady(url: string): Promise<boolean> {
  return fetch(`${url}/readyz`).then(
    async (response) => (await response.text(), response.status === 200),
    () => false,
  );
}

/** From the start of the log: a benchmark may write more of it than fits into a string. */
function serverPid(logFile: string): number | null {
  const start = Buffer.alloc(1024 * 1024);
  const log = openSync(logFile, 'r');
  const bytes = readSync(log, start, 0, start.length, 0);
  closeSync(log);
  const starting = /"pid":(\d+),[^\n]*(?:"starting"|Server listening)/.exec(start.toString('utf8', 0, bytes));
  return starting && Number(starting[1]);
}

/** Signals the server process; npm and the launcher end with it. */
function stopOnce(child: ChildProcess, logFile: string, dataDir: string): () => Promise<void> {
  let stopping: Promise<void> | undefined;
  const stop = async () => {
    const cluster = realpathOrNull(join(dataDir, 'postgres'));
    if (child.exitCode === null && child.signalCode === null) {
      const exited = new Promise((resolve) => child.once('exit', resolve));
      const pid = serverPid(logFile) ?? child.pid!;
      process.kill(pid, 'SIGTERM');
      const gone = await Promise.race([exited.then(() => true), sleep(stopTimeoutMs, false, { ref: false })]);
      if (!gone) throw new Error(`the server does not stop: process ${pid}, directory ${dataDir}`);
    }
    if (cluster && !cluster.startsWith(dataDir)) toRemove.add(cluster);
  };
  return () => (stopping ??= stop());
}

/** Clusters outside the data directory, because PostgreSQL's account cannot enter it. */
const toRemove = new Set<string>();
process.on('exit', () => {
  for (const dir of toRemove) rmSync(dir, { recursive: true, force: true });
});

function realpathOrNull(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

/** The server's socket, from PostgreSQL's pid file. */
function connectionOf(dataDir: string): ConnectionOptions {
  const lines = readFileSync(join(dataDir, 'postgres', 'data', 'postmaster.pid'), 'utf8').split('\n');
  return { host: lines[4]!, port: Number(lines[3]), user: 'cloudyard', database: 'cloudyard' };
}

export async function request(
  method: string,
  url: string,
  headers: Record<string, string>,
  body?: unknown,
): Promise<any> {
  const response = await fetch(url, {
    method,
    headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}

/** Waits for the only task of a response and returns it. @throws if it failed */
export async function ended(
  client: Pick<Cloudyard, 'request'>,
  { tasks: [id] }: { tasks: string[] },
): Promise<Record<string, any>> {
  const task = await client.request('GET', `/cloud/v1/tasks/${id}?wait=60`);
  if (task.state !== 'FINISHED') throw new Error(`the task is ${task.state}: ${task.error}`);
  return task;
}
