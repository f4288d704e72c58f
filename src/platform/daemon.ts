/**
 * Runs a program that must outlive a crash of this process and be adopted by the next one.
 *
 * Invariant: one live process for each pid file. Before each start the pid file is read. If it names a live process that
 * `matches`, that process is adopted; otherwise the file is stale and removed. A pid alone is not proof (it may be reused, or
 * be a zombie that nothing reaps in a container), so a process is identified by its pid, its start time and its command
 * line, from /proc. Without /proc nothing is adopted. If the file is missing, the process is found by its command line.
 *
 * The process gets its own process group, so that Ctrl-C in the terminal does not reach it. It writes to a file, because a
 * pipe to this process would break when this process dies.
 *
 * Failure modes: a first start that fails rejects with the last lines of the program's log. Later failures are logged and
 * retried with backoff, until `stop` or `release`. If two processes supervise the same daemon and both start it, the
 * second program must exit by itself (a lock, a busy port); its supervisor then adopts the first one.
 */
import { once } from 'node:events';
import { closeSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { aborted } from 'node:util';
import { spawnChild } from './child-process.ts';
import { type DaemonHealth, watchHealth } from './daemon-health.ts';
import { endOfLog, openDaemonLog } from './daemon-log.ts';
import type { Logger } from './log.ts';
import { readOrEmpty } from './read-or-empty.ts';
import { findByCommandLine, isRunning, type LiveProcess, processIn, readPidFile } from './running-processes.ts';

export interface DaemonOptions {
  /** For logs, for example `ganesha`. */
  name: string;
  /** `env` is added to the inherited variables (child-process.ts). */
  command: { file: string; args: string[]; env?: Record<string, string>; uid?: number; gid?: number; cwd?: string };
  /** The uid that the program changes to by itself. */
  account?: number;
  /** Written right after the start, by the program itself if `writesPidFile`. Removed when stale. */
  pidFile: string;
  /** Whether the program itself writes `pidFile`. */
  writesPidFile?: boolean;
  /** Whether a command line (arguments joined by spaces) is that of this daemon with this data. */
  matches(commandLine: string, pid: number): boolean;
  /** Resolves when the daemon responds; rejects until then. Polled, one call at a time. */
  probe(): Promise<void>;
  /**
   * The socket that the program creates at its start and that `probe` needs. When another program removes it, nobody can
   * connect, so the daemon is stopped and started again.
   */
  socket?: string;
  /** How long `probe` may fail before the start counts as failed. Unit: seconds. */
  startTimeout: number;
  /** Appended to; see daemon-log.ts. */
  logFile: string;
  /** Default: SIGTERM. */
  stopSignal?: NodeJS.Signals;
  /** The time from `stopSignal` to SIGKILL. Default: 10. Unit: seconds. */
  stopTimeout?: number;
  /** Called before every start (not before an adoption), to clean up after a dead process. */
  beforeStart?(): Promise<void>;
  /** Called when the daemon responds again after an unexpected exit. */
  onRestart?(): void;
  log: Logger;
}

export type Daemon = Awaited<ReturnType<typeof superviseDaemon>>;

interface Running {
  pid: number;
  hasExited(): boolean;
  /** Resolves with the exit code or signal, for the log. */
  exited: Promise<Record<string, unknown>>;
  /** Stops watching, so that the event loop of Node may end. */
  unwatch(): void;
}

interface Supervision {
  options: DaemonOptions;
  current: Running | null;
  /** Of `current`, while it is supervised. */
  health: DaemonHealth | null;
  /** Aborted by `stop` and `release`. */
  ending: AbortSignal;
}

const FIRST_BACKOFF_MS = 200;
const LAST_BACKOFF_MS = 30_000;
/** A process that ran for this long did not fail at its start. */
const STEADY_AFTER_MS = 10_000;
const STOP_TIMEOUT = 10;
const ADOPTED_POLL_MS = 250;
const PROBE_EVERY_MS = 25;

/** Adopts or starts the program, and restarts it until `stop` or `release`. @throws if it does not start */
export async function superviseDaemon(options: DaemonOptions) {
  const ending = new AbortController();
  const supervision: Supervision = { options, current: null, health: null, ending: ending.signal };
  await startOrAdopt(supervision);
  const supervised = supervise(supervision);

  let ended: Promise<void> | null = null;
  let released: Running | null = null;
  const endSupervision = async (then: (running: Running) => Promise<void>) => {
    ending.abort();
    await supervised;
    const running = supervision.current;
    if (running) await then(running);
    supervision.current = null;
  };
  const release = async (running: Running) => {
    running.unwatch();
    released = running;
  };
  const stop = async () => {
    await (ended ??= endSupervision((running) => terminate(options, running)));
    if (released) await terminate(options, released);
    released = null;
  };
  return {
    /** The pid, or null while the daemon is down. */
    pid: () => alive(supervision)?.pid ?? null,
    /** Whether the process runs and does not respond, for example because it is frozen. */
    isSilent: () => supervision.health?.isSilent() ?? false,
    /** Has no effect while the daemon is down. */
    signal(signal: NodeJS.Signals): void {
      const running = alive(supervision);
      if (running) send(running, signal);
    },
    /** Ends the supervision and the process, also a released one: `stopSignal`, then SIGKILL. Resolves when it has exited. */
    stop,
    /** Ends the supervision and leaves the process running, for the next process to adopt. */
    release: () => (ended ??= endSupervision(release)),
  };
}

function alive({ current }: Supervision): Running | null {
  return current && !current.hasExited() ? current : null;
}

/** Restarts the daemon until the end of the supervision; never rejects. */
async function supervise(supervision: Supervision): Promise<void> {
  const { options, ending } = supervision;
  const { name, log } = options;
  let backoff = FIRST_BACKOFF_MS;
  while (supervision.current && !ending.aborted) {
    const upSince = performance.now();
    const { pid, exited } = supervision.current;
    const over = new AbortController();
    supervision.health = watchHealth(options, over.signal);
    const ended = await Promise.race([exited, supervision.health.socketRemoved, aborted(ending, supervision)]);
    over.abort();
    supervision.health = null;
    if (ending.aborted) return;
    if (ended === 'socket removed') {
      log.warn(
        { daemon: name, daemonPid: pid, socket: options.socket },
        'the socket of a daemon was removed; restarting it',
      );
      await terminate(options, supervision.current);
    } else log.warn({ daemon: name, daemonPid: pid, ...(await exited) }, 'daemon died');
    supervision.current = null;
    backoff = backoffAfter(backoff, performance.now() - upSince);

    while (!supervision.current) {
      await sleep(backoff, undefined, { signal: ending }).catch(() => undefined);
      if (ending.aborted) return;
      backoff = Math.min(backoff * 2, LAST_BACKOFF_MS);
      await startOrAdopt(supervision).catch((err: unknown) =>
        log.error({ daemon: name, err, backoff }, 'daemon restart failed'),
      );
    }
    if (!ending.aborted) notifyRestart(options);
  }
}

/** The backoff after a run of `upMs`; `grown` is the one that earlier restarts led to. */
export const backoffAfter = (grown: number, upMs: number) => (upMs > STEADY_AFTER_MS ? FIRST_BACKOFF_MS : grown);

function notifyRestart({ name, log, onRestart }: DaemonOptions): void {
  try {
    onRestart?.();
  } catch (err) {
    log.error({ daemon: name, err }, 'daemon restart hook failed');
  }
}

/** Resolves with a `current` that responds (at the end of the supervision, perhaps not yet). */
async function startOrAdopt(supervision: Supervision): Promise<void> {
  if (await adoptRunning(supervision)) return;
  const { options } = supervision;
  removeStalePidFile(options);
  await options.beforeStart?.();
  if (supervision.ending.aborted) return;

  const { running, logTail } = await start(options);
  supervision.current = running;
  const response = await waitForResponse(supervision, running);
  if (response === 'responds') {
    options.log.info({ daemon: options.name, daemonPid: running.pid }, 'daemon started');
    return;
  }
  if (response === 'ending') return;
  supervision.current = null;
  if (response === 'exited' && (await adoptRunning(supervision))) return;
  if (response === 'silent') await terminate(options, running);
  removeOwnPidFile(options, running.pid);
  const why =
    response === 'exited'
      ? `exited (${describe(await running.exited)})`
      : `did not respond in ${options.startTimeout} s`;
  throw new Error(`${options.name} ${why}; ${logTail()}`);
}

/** A live process that does not respond is terminated, so that the caller starts a new one. */
async function adoptRunning(supervision: Supervision): Promise<boolean> {
  const { options } = supervision;
  restorePidFile(options);
  const found = findRunning(options);
  if (!found) return false;
  const running = watch(found);
  supervision.current = running;
  const response = await waitForResponse(supervision, running);
  if (response === 'responds') options.log.info({ daemon: options.name, daemonPid: found.pid }, 'daemon adopted');
  if (response === 'responds' || response === 'ending') return true;
  supervision.current = null;
  if (response === 'silent') {
    options.log.warn({ daemon: options.name, daemonPid: found.pid }, 'running daemon does not respond, terminating it');
    await terminate(options, running);
  }
  return false;
}

function findRunning({ pidFile, matches }: DaemonOptions): LiveProcess | null {
  const found = processIn(pidFile);
  return found && matches(found.commandLine, found.pid) ? found : null;
}

/** Unless the program writes the file itself: Ganesha of a copied data directory has the same arguments. */
function restorePidFile(options: DaemonOptions): void {
  const { command, matches, pidFile, writesPidFile, log, name } = options;
  if (writesPidFile || readPidFile(pidFile) !== null) return;
  // `--reuid`: of setpriv (drivers/confined.ts).
  const account = options.account ?? command.uid ?? Number(command.args[command.args.indexOf('--reuid') + 1]);
  const pid = findByCommandLine(matches, [process.getuid!(), account]);
  if (pid === null) return;
  log.warn({ daemon: name, daemonPid: pid }, 'the pid file of a running daemon was removed; writing it again');
  writeFileSync(pidFile, `${pid}\n`);
}

/** Reads the file again, because another supervisor may have started the daemon meanwhile. */
function removeStalePidFile(options: DaemonOptions): void {
  if (!findRunning(options)) rmSync(options.pidFile, { force: true });
}

async function start(options: DaemonOptions): Promise<{ running: Running; logTail: () => string }> {
  const { file, args, ...more } = options.command;
  const log = openDaemonLog(options.logFile);
  let child: ReturnType<typeof spawnChild>;
  try {
    child = spawnChild(file, args, { detached: true, stdio: ['ignore', log.descriptor, log.descriptor], ...more });
  } finally {
    closeSync(log.descriptor);
  }
  // In the same turn as the spawn: after a crash of this process in between, the child would never be found.
  if (child.pid !== undefined && !options.writesPidFile) {
    try {
      mkdirSync(dirname(options.pidFile), { recursive: true });
      writeFileSync(options.pidFile, `${child.pid}\n`);
    } catch (cause) {
      // Without the file nothing would ever find the process. A full disk is a cause.
      child.kill('SIGKILL');
      throw cause;
    }
  }
  const exited = new Promise<Record<string, unknown>>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  await once(child, 'spawn').catch((cause: Error) => {
    throw new Error(`${options.name} cannot be started: ${cause.message}`, { cause });
  });
  child.on('error', (err) => options.log.warn({ daemon: options.name, err }, 'daemon process error'));
  const running: Running = {
    pid: child.pid as number,
    hasExited: () => child.exitCode !== null || child.signalCode !== null,
    exited,
    unwatch: () => child.unref(),
  };
  return { running, logTail: () => endOfLog(options.logFile, log.start) };
}

/** A process that is not a child of this process can only be polled. */
function watch(found: LiveProcess): Running {
  const hasExited = () => !isRunning(found);
  let timer: NodeJS.Timeout | undefined;
  const exited = new Promise<Record<string, unknown>>((resolve) => {
    timer = setInterval(() => {
      if (!hasExited()) return;
      clearInterval(timer);
      resolve({ adopted: true });
    }, ADOPTED_POLL_MS);
  });
  return { pid: found.pid, hasExited, exited, unwatch: () => clearInterval(timer) };
}

/**
 * If the program writes its own pid file, a response counts only when that file names this process: the response may come
 * from the process of another supervisor, while this one is about to exit.
 */
async function waitForResponse(
  { options, ending }: Supervision,
  running: Running,
): Promise<'responds' | 'exited' | 'silent' | 'ending'> {
  const deadline = performance.now() + options.startTimeout * 1000;
  const probe = async () => {
    await options.probe();
    return !options.writesPidFile || readPidFile(options.pidFile) === running.pid;
  };
  while (!running.hasExited()) {
    const left = deadline - performance.now();
    if (ending.aborted) return 'ending';
    if (left <= 0) return 'silent';
    const over = new AbortController();
    const stopWaiting = AbortSignal.any([over.signal, ending]);
    const responded = await Promise.race([
      probe().catch(() => false),
      running.exited.then(() => false),
      sleep(left, false, { signal: stopWaiting }).catch(() => false),
    ]);
    over.abort();
    if (responded) return 'responds';
    await sleep(PROBE_EVERY_MS, undefined, { signal: ending }).catch(() => undefined);
  }
  return 'exited';
}

async function terminate(options: DaemonOptions, running: Running): Promise<void> {
  send(running, options.stopSignal ?? 'SIGTERM');
  const killAt = performance.now() + (options.stopTimeout ?? STOP_TIMEOUT) * 1000;
  let killed = false;
  while (!running.hasExited()) {
    if (!killed && performance.now() > killAt) {
      options.log.warn({ daemon: options.name, daemonPid: running.pid }, 'daemon did not stop, killing it');
      send(running, 'SIGKILL');
      killed = true;
    }
    await sleep(20);
  }
  running.unwatch();
  removeOwnPidFile(options, running.pid);
  options.log.info({ daemon: options.name, daemonPid: running.pid }, 'daemon stopped');
}

/** A file that cannot be removed, because storage became read-only, is stale for the next start. */
function removeOwnPidFile({ name, pidFile, writesPidFile, log }: DaemonOptions, pid: number): void {
  if (writesPidFile || Number.parseInt(readOrEmpty(pidFile), 10) !== pid) return;
  try {
    rmSync(pidFile, { force: true });
  } catch (err) {
    log.warn({ daemon: name, err }, 'cannot remove the pid file of a daemon');
  }
}

function send(running: Running, signal: NodeJS.Signals): void {
  try {
    if (!running.hasExited()) process.kill(running.pid, signal);
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code !== 'ESRCH') throw err;
  }
}

const describe = ({ code, signal }: Record<string, unknown>) => (signal ? `signal ${signal}` : `code ${code}`);
