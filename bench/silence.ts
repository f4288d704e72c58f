/**
 * How long the API is silent after `kill -9`, with a supervisor that starts the command again at once: of the server only,
 * and of every process of the host, the embedded PostgreSQL and the data planes included.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../test/free-port.ts';
import { readOrEmpty } from '../src/platform/read-or-empty.ts';
import { processesOf } from '../test/processes.ts';
import { serverScript } from '../test/server-program.ts';
import { ended, request, withSettings } from './cloudyard.ts';
import { liftQuotas, newShare, sharesPath } from './shares.ts';
import type { Row } from './table.ts';
import type { Workplace } from './workplace.ts';

const token = 'bench$bench-secret';
const kills = 7;
const shares = 50;
const pollMs = 5;
const timeoutMs = 60_000;
const bin = fileURLToPath(new URL('../bin/cloudyard.mjs', import.meta.url));

export async function silence(workplace: Workplace): Promise<Row[]> {
  const host = await startSupervised(workplace);
  await host.answers();
  await host.createShares();
  const [ofServer, ofHost]: [number[], number[]] = [[], []];
  for (let i = 0; i < kills; i++) ofServer.push(await host.silenceAfterKill(host.servers));
  for (let i = 0; i < kills; i++) ofHost.push(await host.silenceAfterKill(host.processes));
  return [
    { what: 'silence of the API after kill -9 of the server', values: ofServer, unit: 's', bar: { atMost: 2 } },
    { what: 'the same of every process of the host', values: ofHost, unit: 's', bar: { atMost: 5 } },
  ];
}

interface Supervised {
  answers(): Promise<void>;
  createShares(): Promise<void>;
  servers(): number[];
  processes(): number[];
  /** Kills the processes that `find` returns. Returns the seconds from the last response before that to the first one after it. */
  silenceAfterKill(find: () => number[]): Promise<number>;
}

async function startSupervised(workplace: Workplace): Promise<Supervised> {
  const dataDir = join(workplace.dir, 'data');
  mkdirSync(dataDir);
  const port = await freePort();
  const env = withSettings({
    CLOUDYARD_DATA_DIR: dataDir,
    CLOUDYARD_PORT: String(port),
    CLOUDYARD_BOOTSTRAP_TOKEN: token,
    CLOUDYARD_NFS_PORT: String(await freePort()),
    CLOUDYARD_NFS_VERSIONS: '4',
    CLOUDYARD_REGISTRY_PORT: String(await freePort()),
    CLOUDYARD_LOG_FORMAT: 'json',
    CLOUDYARD_CONSOLE: '0',
  });
  const url = `http://127.0.0.1:${port}`;
  const headers = { authorization: `apikey ${token}` };
  const requester = {
    request: (method: string, path: string, body?: unknown) => request(method, url + path, headers, body),
  };
  const supervisor = supervise(join(workplace.dir, 'server.log'), env);
  workplace.closing(supervisor.stop);
  const isUp = () =>
    fetch(`${url}${sharesPath}?limit=1`, { headers, signal: AbortSignal.timeout(2000) }).then(
      async (response) => (await response.text(), response.status === 200),
      () => false,
    );
  const answers = async () => {
    const deadline = performance.now() + timeoutMs;
    while (!(await isUp())) {
      if (performance.now() > deadline) throw new Error(`the API does not respond within ${timeoutMs / 1000} s`);
      await sleep(pollMs);
    }
  };
  return {
    answers,
    async createShares() {
      await liftQuotas(requester);
      const share = await newShare(requester);
      const created = await Promise.all(
        Array.from({ length: shares }, () => requester.request('POST', sharesPath, share)),
      );
      for (const each of created) await ended(requester, each);
    },
    servers: () => processesOf(workplace.dir).filter(isServer),
    processes: () => processesOf(workplace.dir),
    async silenceAfterKill(find) {
      const pids = find();
      if (pids.length === 0) throw new Error('no process to kill');
      await answers();
      const last = performance.now();
      kill(pids);
      await answers();
      const seconds = (performance.now() - last) / 1000;
      // The host settles before the next kill.
      await sleep(3000);
      return seconds;
    },
  };
}

/** Starts the command again at once, whenever it ends. */
function supervise(logFile: string, env: Record<string, string>): { stop(): Promise<void> } {
  let child: ChildProcess;
  let stopping = false;
  const { promise: stopped, resolve } = Promise.withResolvers<void>();
  const start = () => {
    const log = openSync(logFile, 'a');
    child = spawn(process.execPath, [bin, 'start'], { env, stdio: ['ignore', log, log], detached: true });
    closeSync(log);
    child.once('exit', () => (stopping ? resolve() : start()));
  };
  start();
  return {
    async stop() {
      stopping = true;
      child.kill('SIGINT');
      await stopped;
    },
  };
}

function kill(pids: number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended with its parent.
    }
  }
}

/** Whether it runs the server; the launcher does not. */
function isServer(pid: number): boolean {
  return readOrEmpty(`/proc/${pid}/cmdline`).includes(serverScript);
}
