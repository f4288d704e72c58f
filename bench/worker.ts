/** A worker for a server that runs without one. It can be killed and restarted. */
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { preloadsOf, serverScript } from '../test/server-program.ts';
import type { Cloudyard } from './cloudyard.ts';
import type { Workplace } from './workplace.ts';

const patienceMs = 60_000;
let started = 0;

interface Worker {
  /** Sends SIGKILL and resolves when the process has ended. */
  kill(): Promise<void>;
}

/** Starts a worker and resolves when it is ready. */
export async function startWorker(workplace: Workplace, { environment }: Cloudyard): Promise<Worker> {
  const logFile = join(workplace.dir, `worker-${++started}.log`);
  const log = openSync(logFile, 'w');
  const child = spawn(process.execPath, [...preloadsOf(serverScript), serverScript, 'worker', '--region', '1'], {
    env: environment,
    stdio: ['ignore', log, log],
    detached: true,
  });
  closeSync(log);
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const end = (signal: NodeJS.Signals) => async () => {
    child.kill(signal);
    await exited;
  };
  // SIGTERM would keep its data planes.
  workplace.closing(end('SIGINT'));
  const deadline = performance.now() + patienceMs;
  while (!readFileSync(logFile, 'utf8').includes('Cloudyard is ready.')) {
    if (child.exitCode !== null || performance.now() > deadline) {
      throw new Error(`the worker did not start: ${readFileSync(logFile, 'utf8')}`);
    }
    await sleep(5);
  }
  return { kill: end('SIGKILL') };
}
