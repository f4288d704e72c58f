/**
 * The one HAProxy of this data directory: a master that we supervise, and its workers. The master keeps its pid over
 * reloads, hands the listening sockets to a new worker, and takes every worker with it when it dies; a worker that dies
 * takes the master with it. So there is nothing to find but the master, and nothing is ever orphaned (both measured).
 *
 * Each worker has an admin socket of its own, named by the revision of its configuration: during a reload two workers
 * accept on sockets that they share, and a command must never reach the one that goes. Which revision runs is asked from
 * the master, whose socket never moves.
 *
 * How it fails: a reload that HAProxy refuses (a port that is taken in the last moment) leaves the old worker as it was
 * and rejects. While HAProxy is down, calls reject as retryable; what is on disk counts at its next start.
 */
import { readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type Daemon, superviseDaemon } from '../../platform/daemon.ts';
import { hostError, run } from '../command.ts';
import { confined } from '../confined.ts';
import { DriverError } from '../driver.ts';
import type { Layout } from './layout.ts';
import { type Ask, noAnswer, patiently, runtimeSocket } from './runtime.ts';

export interface Running {
  revision: string;
  structure: string;
  /** The pid of the worker that takes connections. */
  worker: number;
}

export interface HaproxyProcess {
  /** Starts it, or adopts the one that runs. */
  start(): Promise<void>;
  isUp(): boolean;
  /** What runs now. @throws DriverError while nothing does */
  running(): Promise<Running>;
  /** Asks the current worker. */
  ask: Ask;
  /**
   * Takes over what is on disk, which has this revision. Resolves with why not when HAProxy refuses and goes on with what
   * it had. @throws DriverError when nothing is known, such as while it is down
   */
  reload(revision: string): Promise<{ refused: DriverError | null }>;
  /** Workers that have given up their listeners and drain, as the master tells them. */
  oldWorkers(): Promise<number[]>;
  askOld(pid: number, commands: string[]): Promise<string>;
  stop(): Promise<void>;
  release(): Promise<void>;
}

export interface HaproxyProcessOptions {
  layout: Layout;
  haproxy: string;
  log: Logger;
  /** Called before every start: what is on disk must be fit to start with. */
  beforeStart(): Promise<void>;
  /** It died and came back. */
  onRestart(): void;
}

/**
 * Ports below 1024, the account of its workers, signals to them, the owner and mode of a socket, and a data directory below
 * a folder of another user's. Its workers have none.
 */
const MASTER_CAPABILITIES = ['net_bind_service', 'setuid', 'setgid', 'kill', 'chown', 'fowner', 'dac_read_search'];
const RELOAD_PATIENCE_MS = 60_000;
const POLL_MS = 5;
const ASK_MASTER_EVERY = 10;
const DESCRIPTION = /^description: cloudyard ([\w.-]+) ([\w.-]+)$/m;

export function haproxyProcess(options: HaproxyProcessOptions): HaproxyProcess {
  const { layout, log } = options;
  const master = runtimeSocket(layout.masterSocket);
  const current = patiently(runtimeSocket(layout.masterSocket, '@1;'));
  let daemon: Daemon | null = null;
  let known: Running | null = null;

  const learn = async () => (known = readRunning(await current(['show info'])));
  const running = async () => known ?? learn();

  async function reload(revision: string): Promise<{ refused: DriverError | null }> {
    if (daemon?.pid() == null) throw noAnswer('HAProxy is down');
    const failures = failedReloads(await patiently(master)(['show proc']));
    const logged = await logSize(layout);
    daemon.signal('SIGUSR2');
    const admin = runtimeSocket(layout.adminSocket(revision));
    const giveUp = Date.now() + RELOAD_PATIENCE_MS;
    for (let poll = 1; Date.now() < giveUp; poll += 1) {
      const found = await admin(['show info'])
        .then(readRunning)
        .catch(() => null);
      if (found?.revision === revision) {
        known = found;
        await dropOtherSockets(layout, revision);
        return { refused: null };
      }
      if (daemon.pid() === null) throw noAnswer('HAProxy died while it reloaded');
      if (poll % ASK_MASTER_EVERY === 0) {
        const answer = await master(['show proc']).catch(() => '');
        if (failedReloads(answer) > failures) return { refused: await refused(layout, logged) };
      }
      await sleep(POLL_MS);
    }
    throw noAnswer('HAProxy does not come up with its new configuration');
  }

  return {
    async start() {
      const begin = () => startMaster(options, master, () => (known = null));
      daemon = await begin();
      await learn();
    },
    isUp: () => daemon?.pid() != null,
    running,
    async ask(commands) {
      const { revision } = await running();
      return runtimeSocket(layout.adminSocket(revision))(commands).catch((err: unknown) => {
        known = null;
        throw err;
      });
    },
    reload,
    oldWorkers: async () => oldWorkersIn(await patiently(master)(['show proc'])),
    // It may have ended meanwhile, which is as good.
    askOld: (pid, commands) => patiently(runtimeSocket(layout.masterSocket, `@!${pid};`))(commands).catch(() => ''),
    async stop() {
      await daemon?.stop();
      log.debug('haproxy stopped');
    },
    release: async () => daemon?.release(),
  };
}

async function startMaster(options: HaproxyProcessOptions, master: Ask, forget: () => void): Promise<Daemon> {
  const { layout, haproxy, log } = options;
  try {
    return await superviseDaemon({
      name: 'haproxy',
      command: {
        ...confined(
          { file: haproxy, args: ['-W', '-S', `${layout.masterSocket},mode,600`, '-f', layout.configuration] },
          null,
          MASTER_CAPABILITIES,
        ),
        env: { TMPDIR: layout.haproxy },
      },
      pidFile: join(layout.haproxy, 'haproxy.pid'),
      matches: (commandLine) => commandLine.includes('haproxy ') && commandLine.includes(` -f ${layout.configuration}`),
      async probe() {
        if (!/^\d+\s+worker\s/m.test(currentWorkers(await master(['show proc'])))) throw new Error('no worker yet');
      },
      startTimeout: 60,
      logFile: logFile(layout),
      stopSignal: 'SIGTERM',
      async beforeStart() {
        forget();
        await options.beforeStart();
      },
      onRestart: options.onRestart,
      log,
    });
  } catch (err) {
    throw hostError(`HAProxy does not start: ${(err as Error).message}`, err);
  }
}

/** Checks files as HAProxy would read them. @throws a terminal DriverError with what HAProxy says */
export async function checkConfiguration(haproxy: string, files: string[]): Promise<void> {
  try {
    await run(haproxy, ['-c', '-q', ...files.flatMap((file) => ['-f', file])]);
  } catch (cause) {
    throw new DriverError(`HAProxy does not take the configuration: ${(cause as Error).message}`, {
      customerMessage: 'The load balancer cannot be configured like this.',
      retryable: false,
      cause,
    });
  }
}

/** What HAProxy reads when it starts without knowing anything. */
export const NO_SERVERS_STATE = '1\n';

/** Members that are down stay down over a reload, instead of getting traffic until their first check. */
export async function saveServersState(layout: Layout, state: string): Promise<void> {
  await writeFile(`${layout.stateFile}.unfinished`, state, { mode: 0o600 });
  await rename(`${layout.stateFile}.unfinished`, layout.stateFile);
}

function readRunning(info: string): Running {
  const description = DESCRIPTION.exec(info);
  const pid = /^Pid: (\d+)$/m.exec(info);
  if (!description || !pid) throw noAnswer('HAProxy does not say what it runs');
  return { revision: description[1] ?? '', structure: description[2] ?? '', worker: Number(pid[1]) };
}

function failedReloads(processes: string): number {
  return Number(/\[failed: (\d+)\]/.exec(processes)?.[1] ?? 0);
}

function currentWorkers(processes: string): string {
  return processes.split('# old workers')[0] ?? '';
}

function oldWorkersIn(processes: string): number[] {
  const old = processes.split('# old workers')[1] ?? '';
  return [...old.matchAll(/^(\d+)\s+worker\s/gm)].map(([, pid]) => Number(pid));
}

async function logSize(layout: Layout): Promise<number> {
  return (await stat(logFile(layout)).catch(() => null))?.size ?? 0;
}

export function logFile(layout: Layout): string {
  return join(layout.haproxy, 'haproxy.log');
}

async function refused(layout: Layout, logged: number): Promise<DriverError> {
  const text = (await readFile(logFile(layout)).catch(() => Buffer.alloc(0))).subarray(logged).toString('utf8');
  const alerts = text
    .split('\n')
    .filter((line) => line.startsWith('[ALERT]'))
    .slice(-5);
  return new DriverError(`HAProxy refused to reload: ${alerts.join(' | ')}`, {
    customerMessage: 'The load balancer could not take over the change.',
    retryable: true,
  });
}

async function dropOtherSockets(layout: Layout, revision: string): Promise<void> {
  const keep = layout.adminSocket(revision);
  const names = (await readdir(layout.sockets)).filter((name) => name.startsWith('admin-'));
  for (const name of names)
    if (join(layout.sockets, name) !== keep) await rm(join(layout.sockets, name), { force: true });
}
