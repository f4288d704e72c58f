/**
 * The HAProxy of this data directory: a supervised master and its workers. The master keeps its pid over reloads and passes
 * the listening sockets to the new worker. Master and workers end each other, so no process is orphaned (measured).
 *
 * Every worker has its own admin socket, named by the revision of its configuration: during a reload two workers accept on
 * shared sockets, and a command must not reach the old one. The master, whose socket has a fixed name, reports the
 * current revision.
 *
 * Failure modes: if HAProxy rejects a reload (for example because a port was just taken), the old worker continues. While
 * HAProxy is down, calls fail as retryable; its next start uses the configuration on disk.
 */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Daemon, superviseDaemon } from '../../platform/daemon.ts';
import type { Logger } from '../../platform/log.ts';
import { limited } from '../../platform/turns.ts';
import { onHost, run } from '../command.ts';
import { confined } from '../confined.ts';
import { logSize, readFrom } from '../daemon-logs.ts';
import { DriverError } from '../driver.ts';
import { rejectedConfiguration, proxyUnavailable } from './errors.ts';
import type { Layout } from './layout.ts';
import { type Ask, isMissing, retrying, runtimeSocket } from './runtime-socket.ts';

interface Running {
  revision: string;
  structure: string;
  /** The pid of the worker that accepts connections. */
  worker: number;
}

interface HaproxyProcessOptions {
  layout: Layout;
  haproxy: string;
  log: Logger;
  /** Runs before every start and makes the configuration on disk startable. */
  beforeStart(): Promise<void>;
  /** Runs after HAProxy died and was started again. */
  onRestart(): void;
}

/**
 * For ports below 1024, the account of the workers, signals to them, the owner and mode of sockets, and a data directory
 * below a folder of another user. The workers have no capabilities.
 */
const MASTER_CAPABILITIES = ['net_bind_service', 'setuid', 'setgid', 'kill', 'chown', 'fowner', 'dac_read_search'];
const RELOAD_TIMEOUT_MS = 60_000;
const POLL_MS = 5;
const POLLS_PER_MASTER_CHECK = 10;
const checking = limited(2);
const DESCRIPTION = /^description: cloudyard ([\w.-]+) ([\w.-]+)$/m;

/** Runs nothing before `start`. */
export function createHaproxyProcess(options: HaproxyProcessOptions) {
  const { layout, log } = options;
  const master = runtimeSocket(layout.masterSocket);
  const current = retrying(runtimeSocket(layout.masterSocket, '@1;'));
  let daemon: Daemon | null = null;
  let known: Running | null = null;

  const readCurrent = async () => (known = parseInfo(await current(['show info'])));
  const processes = () => retrying(master)(['show proc']);
  /** @throws DriverError while HAProxy is down */
  const running = async (): Promise<Running> => known ?? readCurrent();

  /**
   * Loads the configuration on disk, which has this revision. Resolves with an error if HAProxy rejects it and keeps the
   * previous one. @throws DriverError if the result is unknown, for example while HAProxy is down
   */
  async function reload(revision: string): Promise<{ refused: DriverError | null }> {
    if (daemon?.pid() == null) throw proxyUnavailable('HAProxy is down');
    const failures = failedReloads(await processes());
    const logged = await logSize(layout.logFile);
    daemon.signal('SIGUSR2');
    const admin = runtimeSocket(layout.adminSocket(revision));
    const deadline = performance.now() + RELOAD_TIMEOUT_MS;
    for (let poll = 1; performance.now() < deadline; poll += 1) {
      const found = await admin(['show info'])
        .then(parseInfo)
        .catch(() => null);
      if (found?.revision === revision) {
        known = found;
        await removeOtherSockets(layout, revision);
        return { refused: null };
      }
      if (daemon.pid() === null) throw proxyUnavailable('HAProxy died during a reload');
      if (poll % POLLS_PER_MASTER_CHECK === 0) {
        const now = await master(['show proc']).catch(() => '');
        if (failedReloads(now) > failures) return { refused: await rejection(layout, logged) };
      }
      await sleep(POLL_MS);
    }
    throw proxyUnavailable('HAProxy did not load its new configuration in time');
  }

  return {
    /** Starts HAProxy, or adopts a running one. */
    async start(): Promise<void> {
      daemon = await startMaster(options, master, () => {
        known = null;
      });
      await readCurrent();
    },
    isUp: () => daemon?.pid() != null,
    /** Whether it is up and does not respond. */
    isSilent: () => daemon?.isSilent() ?? false,
    running,
    /** Sends commands to the current worker. */
    async ask(commands: string[]): Promise<string> {
      const { revision } = await running();
      return runtimeSocket(layout.adminSocket(revision))(commands).catch((err: unknown) => {
        known = null;
        // Something removed its socket. Through the master, commands reach the same worker, except during a reload.
        if (isMissing(err)) return current(commands);
        throw err;
      });
    },
    reload,
    /** How often HAProxy has been reloaded since its start. */
    reloads: async () => Number(/^\d+\s+master\s+(\d+)/m.exec(await processes())?.[1] ?? 0),
    /** The pids of replaced workers, which drain their connections. */
    oldWorkers: async () => oldWorkersIn(await processes()),
    /** Empty if the worker has ended or does not respond. */
    askOldWorker: (pid: number, commands: string[]) =>
      retrying(runtimeSocket(layout.masterSocket, `@!${pid};`))(commands).catch(() => ''),
    async stop(): Promise<void> {
      await daemon?.stop();
      log.debug('haproxy stopped');
    },
    release: async () => daemon?.release(),
  };
}

export type HaproxyProcess = ReturnType<typeof createHaproxyProcess>;

function startMaster(options: HaproxyProcessOptions, master: Ask, onStart: () => void): Promise<Daemon> {
  const { layout, haproxy, log } = options;
  return onHost('cannot start HAProxy', () =>
    superviseDaemon({
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
      logFile: layout.logFile,
      async beforeStart() {
        onStart();
        await options.beforeStart();
      },
      onRestart: options.onRestart,
      log,
    }),
  );
}

/**
 * Has HAProxy check files, at most two times at once. @throws DriverError: permanent with the output of HAProxy, or retryable
 * without a verdict
 */
export async function checkConfiguration(haproxy: string, files: string[]): Promise<void> {
  await checking(() => run(haproxy, ['-c', ...files.flatMap((file) => ['-f', file])])).catch((cause: unknown) => {
    throw rejectedConfiguration('HAProxy', cause);
  });
}

/** The state file for a start without previous state. */
export const NO_SERVERS_STATE = '1\n';

function parseInfo(info: string): Running {
  const description = DESCRIPTION.exec(info);
  const pid = /^Pid: (\d+)$/m.exec(info);
  if (!description || !pid) throw proxyUnavailable('HAProxy does not report its configuration');
  return { revision: description[1] ?? '', structure: description[2] ?? '', worker: Number(pid[1]) };
}

function failedReloads(processes: string): number {
  return Number(/\[failed: (\d+)\]/.exec(processes)?.[1] ?? 0);
}

function currentWorkers(processes: string): string {
  return processes.split('# old workers')[0] ?? '';
}

/** @throws DriverError if the output is incomplete, as while the master restarts */
function oldWorkersIn(processes: string): number[] {
  if (!/^\d+\s+master\s/m.test(processes)) throw proxyUnavailable('HAProxy does not report its workers');
  const old = processes.split('# old workers')[1] ?? '';
  return [...old.matchAll(/^(\d+)\s+worker\s/gm)].map(([, pid]) => Number(pid));
}

async function rejection(layout: Layout, logged: number): Promise<DriverError> {
  const text = await readFrom(layout.logFile, logged).catch(() => '');
  const alerts = text
    .split('\n')
    .filter((line) => line.startsWith('[ALERT]'))
    .slice(-5);
  return new DriverError(`HAProxy rejected a reload: ${alerts.join(' | ')}`, {
    customerMessage: 'HAProxy rejected the change',
    retryable: true,
  });
}

async function removeOtherSockets(layout: Layout, revision: string): Promise<void> {
  const keep = layout.adminSocket(revision);
  const names = (await readdir(layout.sockets)).filter((name) => name.startsWith('admin-'));
  for (const name of names)
    if (join(layout.sockets, name) !== keep) await rm(join(layout.sockets, name), { force: true });
}
