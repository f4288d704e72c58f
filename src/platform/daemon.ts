/**
 * Runs a program that must outlive a crash of this process and be found again by the next one.
 *
 * Invariant: one live process a pid file. Before each start the pid file is read; a live process that it names, and that
 * `matches`, is adopted instead of being started a second time, and anything else it names is stale and removed. A pid
 * alone proves nothing (reused, or a zombie that nobody reaps in a container), so a process is its pid, its start time and
 * its command line, from /proc. Where there is no /proc nothing is adopted.
 *
 * The process gets a group of its own, so that Ctrl-C at our terminal does not reach it, and writes to a file, not to a
 * pipe of ours that would break when we die.
 *
 * How it fails: a first start that does not succeed rejects with the last lines of the program's log. Afterwards failures
 * are only logged, and tried again with backoff, until `stop` or `release`. If two processes supervise the same daemon
 * and both start it, the loser's program must exit by itself (a lock, a busy port); the loser then adopts the winner's.
 */
import {
  closeSync,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { spawnChild } from './child-process.ts';

export interface DaemonOptions {
  /** For logs, e.g. `ganesha`. */
  name: string;
  /** `env` is added to what every child inherits (child-process.ts). */
  command: { file: string; args: string[]; env?: Record<string, string>; uid?: number; gid?: number; cwd?: string };
  /** Written here right after the start, unless `readPid` says that the program writes its own. Removed when stale. */
  pidFile: string;
  /** For a program that writes its own pid file: the pid in it, or null when there is none. */
  readPid?(): Promise<number | null>;
  /** True when the command line (arguments joined by spaces) of a live process shows that it is this daemon with this data. */
  matches(commandLine: string): boolean;
  /** Resolves when the daemon answers; rejects while it does not yet. Polled, never twice at a time. */
  probe(): Promise<void>;
  /** How long `probe` may fail before the start has failed, seconds. */
  startTimeout: number;
  /** Appended to; truncated at start past 10 MiB. Only its owner may read it: programs log what clients send. */
  logFile: string;
  stopSignal: NodeJS.Signals;
  /** How long after `stopSignal` SIGKILL follows, seconds; 10 unless given. */
  stopTimeout?: number;
  /** Called before every start (not before an adoption): clean what the dead left behind. */
  beforeStart?(): Promise<void>;
  /** Called when it answers again after an unasked exit. */
  onRestart?(): void;
  log: Logger;
}

export interface Daemon {
  /** The pid, or null while it is down. */
  pid(): number | null;
  /** Does nothing while it is down. */
  signal(signal: NodeJS.Signals): void;
  /** Ends the supervision and the process: `stopSignal`, and SIGKILL if that does not help. Resolves when it is gone. */
  stop(): Promise<void>;
  /** Ends the supervision and leaves the process running, for the next one to adopt. */
  release(): Promise<void>;
}

export interface LiveProcess {
  pid: number;
  /** Clock ticks since boot: tells a reused pid from the same process. */
  startTime: string;
  commandLine: string;
}

interface Running {
  pid: number;
  isGone(): boolean;
  /** How it ended, for the log. */
  gone: Promise<Record<string, unknown>>;
  /** Stops watching, so that Node's event loop may end. */
  forget(): void;
}

interface Supervision {
  options: DaemonOptions;
  current: Running | null;
  /** Aborted by `stop` and `release`. */
  ending: AbortSignal;
}

const FIRST_BACKOFF_MS = 200;
const LAST_BACKOFF_MS = 30_000;
const STEADY_AFTER_MS = 60_000;
const STOP_TIMEOUT = 10;
const ADOPTED_POLL_MS = 250;
const PROBE_EVERY_MS = 25;
const LOG_LIMIT = 10 * 1024 * 1024;

/** Null for a dead process, a zombie, or a pid that is none. */
export function liveProcess(pid: number): LiveProcess | null {
  if (!Number.isSafeInteger(pid) || pid <= 0) return null;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field, the name in parentheses, may itself hold spaces and parentheses.
    const fromState = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fromState[0] === 'Z' || fromState[0] === 'X') return null;
    const commandLine = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    return { pid, startTime: fromState[19] ?? '', commandLine };
  } catch {
    return null;
  }
}

export async function superviseDaemon(options: DaemonOptions): Promise<Daemon> {
  const ending = new AbortController();
  const supervision: Supervision = { options, current: null, ending: ending.signal };
  await bringUp(supervision);
  const supervised = keepUp(supervision);

  let ended: Promise<void> | null = null;
  const endSupervision = async (then: (running: Running) => Promise<void>) => {
    ending.abort();
    await supervised;
    const running = supervision.current;
    if (running) await then(running);
    supervision.current = null;
  };
  return {
    pid: () => alive(supervision)?.pid ?? null,
    signal: (signal) => {
      const running = alive(supervision);
      if (running) send(running, signal);
    },
    stop: () => (ended ??= endSupervision((running) => end(options, running))),
    release: () => (ended ??= endSupervision(async (running) => running.forget())),
  };
}

function alive({ current }: Supervision): Running | null {
  return current && !current.isGone() ? current : null;
}

/** Watches until the end of the supervision; never rejects. */
async function keepUp(supervision: Supervision): Promise<void> {
  const { options, ending } = supervision;
  const { name, log } = options;
  let backoff = FIRST_BACKOFF_MS;
  while (supervision.current && !ending.aborted) {
    const upSince = Date.now();
    const { pid, gone } = supervision.current;
    const how = await Promise.race([gone, aborted(ending)]);
    if (ending.aborted) return;
    supervision.current = null;
    log.warn({ daemon: name, daemonPid: pid, ...how }, 'daemon died');
    if (Date.now() - upSince > STEADY_AFTER_MS) backoff = FIRST_BACKOFF_MS;

    while (!supervision.current) {
      await sleep(backoff, undefined, { signal: ending }).catch(() => undefined);
      if (ending.aborted) return;
      backoff = Math.min(backoff * 2, LAST_BACKOFF_MS);
      await bringUp(supervision).catch((err: unknown) =>
        log.error({ daemon: name, err, backoff }, 'daemon restart failed'),
      );
    }
    if (!ending.aborted) tellRestarted(options);
  }
}

function tellRestarted({ name, log, onRestart }: DaemonOptions): void {
  try {
    onRestart?.();
  } catch (err) {
    log.error({ daemon: name, err }, 'daemon restart hook failed');
  }
}

/** Resolves with `current` set and answering (or, at the end of the supervision, set and perhaps not answering yet). */
async function bringUp(supervision: Supervision): Promise<void> {
  if (await adoptRunning(supervision)) return;
  const { options } = supervision;
  await removeStalePidFile(options);
  await options.beforeStart?.();
  if (supervision.ending.aborted) return;

  const { running, logTail } = await start(options);
  supervision.current = running;
  const answer = await waitForAnswer(supervision, running);
  if (answer === 'answers') {
    options.log.info({ daemon: options.name, daemonPid: running.pid }, 'daemon started');
    return;
  }
  if (answer === 'ending') return;
  supervision.current = null;
  if (answer === 'gone' && (await adoptRunning(supervision))) return;
  if (answer === 'silent') await end(options, running);
  removeOwnPidFile(options, running.pid);
  const why =
    answer === 'gone' ? `exited (${describe(await running.gone)})` : `did not answer in ${options.startTimeout} s`;
  throw new Error(`${options.name} ${why}; its log ${options.logFile} ends:\n${logTail()}`);
}

/** A process that lives but does not answer is ended, so that the caller starts a fresh one. */
async function adoptRunning(supervision: Supervision): Promise<boolean> {
  const { options } = supervision;
  const found = await findRunning(options);
  if (!found) return false;
  const running = watch(found);
  supervision.current = running;
  const answer = await waitForAnswer(supervision, running);
  if (answer === 'answers') options.log.info({ daemon: options.name, daemonPid: found.pid }, 'daemon adopted');
  if (answer === 'answers' || answer === 'ending') return true;
  supervision.current = null;
  if (answer === 'silent') {
    options.log.warn({ daemon: options.name, daemonPid: found.pid }, 'running daemon does not answer, ending it');
    await end(options, running);
  }
  return false;
}

async function findRunning(options: DaemonOptions): Promise<LiveProcess | null> {
  const pid = options.readPid ? await options.readPid() : readPidFile(options.pidFile);
  const found = pid === null ? null : liveProcess(pid);
  return found && options.matches(found.commandLine) ? found : null;
}

function readPidFile(pidFile: string): number | null {
  try {
    return Number.parseInt(readFileSync(pidFile, 'utf8'), 10);
  } catch {
    return null;
  }
}

/** Reads once more: another supervisor may have started it since. */
async function removeStalePidFile(options: DaemonOptions): Promise<void> {
  if (!(await findRunning(options))) rmSync(options.pidFile, { force: true });
}

async function start(options: DaemonOptions): Promise<{ running: Running; logTail: () => string }> {
  const { file, args, env, uid, gid, cwd } = options.command;
  mkdirSync(dirname(options.logFile), { recursive: true });
  const logFd = openSync(options.logFile, 'a', 0o600);
  fchmodSync(logFd, 0o600);
  let logStart = fstatSync(logFd).size;
  if (logStart > LOG_LIMIT) {
    ftruncateSync(logFd);
    logStart = 0;
  }
  const child = spawnChild(file, args, {
    detached: true,
    stdio: ['ignore', logFd, logFd],
    ...(env && { env }),
    ...(uid !== undefined && { uid }),
    ...(gid !== undefined && { gid }),
    ...(cwd !== undefined && { cwd }),
  });
  closeSync(logFd);
  // In the same turn as the spawn: a crash of ours in between would leave a process that nobody finds again.
  if (child.pid !== undefined && !options.readPid) {
    mkdirSync(dirname(options.pidFile), { recursive: true });
    writeFileSync(options.pidFile, `${child.pid}\n`);
  }
  const gone = new Promise<Record<string, unknown>>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (cause) => reject(new Error(`${options.name} cannot be started: ${cause.message}`, { cause })));
  });
  child.on('error', (err) => options.log.warn({ daemon: options.name, err }, 'daemon process error'));
  const running: Running = {
    pid: child.pid as number,
    isGone: () => child.exitCode !== null || child.signalCode !== null,
    gone,
    forget: () => child.unref(),
  };
  return { running, logTail: () => lastLines(options.logFile, logStart) };
}

/** A process that is not our child can only be polled. */
function watch({ pid, startTime }: LiveProcess): Running {
  const isGone = () => liveProcess(pid)?.startTime !== startTime;
  let timer: NodeJS.Timeout | undefined;
  const gone = new Promise<Record<string, unknown>>((resolve) => {
    timer = setInterval(() => {
      if (!isGone()) return;
      clearInterval(timer);
      resolve({ adopted: true });
    }, ADOPTED_POLL_MS);
  });
  return { pid, isGone, gone, forget: () => clearInterval(timer) };
}

/**
 * Where the program writes its own pid file, an answer counts only when that file names this process: another
 * supervisor's may be the one that answers while ours is about to give way to it.
 */
async function waitForAnswer(
  { options, ending }: Supervision,
  running: Running,
): Promise<'answers' | 'gone' | 'silent' | 'ending'> {
  const deadline = Date.now() + options.startTimeout * 1000;
  const probe = async () => {
    await options.probe();
    return !options.readPid || (await options.readPid()) === running.pid;
  };
  while (!running.isGone()) {
    const left = deadline - Date.now();
    if (ending.aborted) return 'ending';
    if (left <= 0) return 'silent';
    const over = new AbortController();
    const stopWaiting = AbortSignal.any([over.signal, ending]);
    const answered = await Promise.race([
      probe().catch(() => false),
      running.gone.then(() => false),
      sleep(left, false, { signal: stopWaiting }).catch(() => false),
    ]);
    over.abort();
    if (answered) return 'answers';
    await sleep(PROBE_EVERY_MS, undefined, { signal: ending }).catch(() => undefined);
  }
  return 'gone';
}

async function end(options: DaemonOptions, running: Running): Promise<void> {
  send(running, options.stopSignal);
  const killAt = Date.now() + (options.stopTimeout ?? STOP_TIMEOUT) * 1000;
  let killed = false;
  while (!running.isGone()) {
    if (!killed && Date.now() > killAt) {
      options.log.warn({ daemon: options.name, daemonPid: running.pid }, 'daemon did not stop, killing it');
      send(running, 'SIGKILL');
      killed = true;
    }
    await sleep(20);
  }
  running.forget();
  removeOwnPidFile(options, running.pid);
  options.log.info({ daemon: options.name, daemonPid: running.pid }, 'daemon stopped');
}

function removeOwnPidFile(options: DaemonOptions, pid: number): void {
  if (!options.readPid && readPidFile(options.pidFile) === pid) rmSync(options.pidFile, { force: true });
}

function send(running: Running, signal: NodeJS.Signals): void {
  try {
    if (!running.isGone()) process.kill(running.pid, signal);
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code !== 'ESRCH') throw err;
  }
}

function aborted(signal: AbortSignal): Promise<Record<string, unknown>> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve({});
    else signal.addEventListener('abort', () => resolve({}), { once: true });
  });
}

function describe({ code, signal }: Record<string, unknown>): string {
  return signal ? `signal ${signal}` : `code ${code}`;
}

function lastLines(file: string, from: number): string {
  return readFileSync(file).subarray(from).toString('utf8').trimEnd().split('\n').slice(-20).join('\n');
}
