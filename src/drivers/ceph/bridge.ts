/**
 * The connection to a Ceph cluster: one long-lived process (bridge.py) that calls librados and librbd. A call costs about
 * 10 ms; the same as a command (`rbd`, `ceph`) 60 to 300 ms, most of it for the connection.
 *
 * Invariants: every call ends, within its time limit even if Ceph blocks forever (its monitors are away); without a limit,
 * with its process. The calls of a process that died fail as retryable; whether they had an effect is unknown. A client that
 * was blocklisted gets a new process and with it a new address.
 *
 * Failure modes: the process is started again with backoff. Calls wait for it, within their time limit. When many calls
 * have exceeded their limit, their threads are blocked, and the process is replaced.
 */
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { spawnChild } from '../../platform/child-process.ts';
import type { Logger } from '../../platform/log.ts';
import { programFile } from '../../platform/program-files.ts';
import type { DriverError } from '../driver.ts';
import type { Progress } from '../volume.ts';
import { cephError, unreachable } from './errors.ts';

export interface BridgeOptions {
  /** The configuration file of the cluster. It, or the default place, names the keyring of the user. */
  conf: string;
  /** Without `client.`. */
  user: string;
  /** Other options of Ceph, for example `keyring`. */
  options?: Record<string, string>;
  /** A command that runs the process, for example in the network namespace of a host. */
  prefix?: string[];
  log: Logger;
}

export interface CallOptions {
  /** Of a call that reports progress: without progress. Null: until the process ends. Default: 30. */
  timeoutSeconds?: number | null;
  onProgress?(progress: Progress): void;
}

/** As the cluster sees this process. */
interface CephClient {
  /** `client.4711`. */
  client: string;
  /** `address:port/nonce`, which the blocklist takes. */
  address: string;
}

export type CephBridge = ReturnType<typeof createCephBridge>;

/** What most callers of a cluster need. */
export type CephCaller = Pick<CephBridge, 'call'>;

interface Pending {
  operation: string;
  settle(error: DriverError | null, result?: unknown): void;
  progress(done: number, total: number): void;
}

interface Process {
  child: ReturnType<typeof spawnChild>;
  client: CephClient | null;
  pending: Map<number, Pending>;
  /** Calls that exceeded their time limit; each of them blocks a thread. */
  blocked: Set<number>;
  exited: Promise<string>;
}

interface Message {
  id?: number;
  result?: unknown;
  progress?: [number, number];
  error?: { errno: number; message: string };
  ready?: CephClient;
  failed?: { errno: number; message: string };
}

export const PYTHON = '/usr/bin/python3';
const PROGRAM = programFile('drivers/ceph/bridge.py');
/** Calls that Ceph itself ends with ETIMEDOUT, so that threads are not blocked forever. Units: seconds. */
const LIMITS = { client_mount_timeout: '10', rados_mon_op_timeout: '15', rados_osd_op_timeout: '25' };
const CALL_SECONDS = 30;
const CONNECT_SECONDS = 15;
const MAX_BLOCKED = 16;
const FIRST_BACKOFF_MS = 100;
const LAST_BACKOFF_MS = 5000;
const STOP_MS = 2000;
/** Enough for the assertion above the stack of a library that aborts. */
const LAST_LINES = 20;

/** Connects with `start`. Calls before it, or while it reconnects, wait within their time limit. */
export function createCephBridge(options: BridgeOptions) {
  const { log } = options;
  const ending = new AbortController();
  let current: Process | null = null;
  let problem: string | null = 'not started';
  let connected = Promise.withResolvers<void>();
  const firstEnd = Promise.withResolvers<void>();
  let nextId = 1;
  let supervised: Promise<void> | null = null;

  /** Starts a process and resolves when it has ended. */
  const runOnce = async (): Promise<void> => {
    const mine = startProcess(options, (client) => {
      mine.client = client;
      problem = null;
      connected.resolve();
      log.debug({ cephClient: client.client }, 'connected to Ceph');
    });
    current = mine;
    const late = setTimeout(() => mine.client ?? mine.child.kill('SIGKILL'), CONNECT_SECONDS * 1000);
    const why = await mine.exited;
    clearTimeout(late);
    current = null;
    if (problem === null) connected = Promise.withResolvers<void>();
    problem = why;
    firstEnd.resolve();
    for (const { operation, settle } of mine.pending.values()) settle(unreachable(operation, why));
  };
  const supervise = async (): Promise<void> => {
    let backoff = FIRST_BACKOFF_MS;
    while (!ending.signal.aborted) {
      const since = performance.now();
      await runOnce();
      if (ending.signal.aborted) return;
      backoff = performance.now() - since > LAST_BACKOFF_MS * 4 ? FIRST_BACKOFF_MS : backoff;
      log.warn({ reason: problem, backoff }, 'the connection to Ceph ended; connecting again');
      await sleep(backoff, undefined, { signal: ending.signal }).catch(() => undefined);
      backoff = Math.min(backoff * 2, LAST_BACKOFF_MS);
    }
  };
  const whenConnected = async (operation: string, seconds: number): Promise<Process> => {
    const over = new AbortController();
    const either = AbortSignal.any([over.signal, ending.signal]);
    const until = performance.now() + seconds * 1000;
    try {
      while (current?.client == null) {
        const left = until - performance.now();
        if (ending.signal.aborted || left <= 0) throw unreachable(operation, problem ?? 'not connected');
        await Promise.race([connected.promise, sleep(left, undefined, { signal: either }).catch(() => undefined)]);
      }
      return current;
    } finally {
      over.abort();
    }
  };

  return {
    /** Null: not connected. */
    client: () => current?.client ?? null,
    /** Why it is not connected; null: connected. */
    problem: () => problem,
    /** The process, for tests; null: none. */
    pid: () => current?.child.pid ?? null,
    /** Resolves when the cluster is connected. @throws DriverError */
    async start(): Promise<void> {
      supervised ??= supervise();
      const refused = firstEnd.promise.then(() => {
        throw unreachable('connect', problem ?? 'the process ended');
      });
      await Promise.race([whenConnected('connect', CONNECT_SECONDS), refused]);
    },
    async stop(): Promise<void> {
      ending.abort();
      const mine = current;
      mine?.child.stdin?.end();
      const late = setTimeout(() => mine?.child.kill('SIGKILL'), STOP_MS);
      await supervised;
      clearTimeout(late);
    },
    /** Calls an operation of bridge.py. @throws DriverError */
    async call<Result>(
      operation: string,
      args: Record<string, unknown> = {},
      { timeoutSeconds = CALL_SECONDS, onProgress }: CallOptions = {},
    ): Promise<Result> {
      const process = await whenConnected(operation, timeoutSeconds ?? CALL_SECONDS);
      const request = { id: nextId++, op: operation, args };
      return (await exchange(process, request, timeoutSeconds, onProgress)) as Result;
    },
  };
}

interface Request {
  id: number;
  op: string;
  args: Record<string, unknown>;
}

/** Sends a request to the process and waits for its response. `seconds`: without progress; null: until the process ends. */
function exchange(
  process: Process,
  request: Request,
  seconds: number | null,
  onProgress: CallOptions['onProgress'],
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const { id, op } = request;
    const settle: Pending['settle'] = (error, result) => {
      process.pending.delete(id);
      clearTimeout(timer);
      if (error) reject(error);
      else resolve(result);
    };
    const expire = () => {
      process.blocked.add(id);
      if (process.blocked.size >= MAX_BLOCKED) process.child.kill('SIGKILL');
      settle(unreachable(op, `no response in ${seconds} s`));
    };
    const limit = () => (seconds === null ? undefined : setTimeout(expire, seconds * 1000));
    let timer = limit();
    process.pending.set(id, {
      operation: op,
      settle,
      progress(doneBytes, totalBytes) {
        clearTimeout(timer);
        timer = limit();
        onProgress?.({ doneBytes, totalBytes });
      },
    });
    process.child.stdin!.write(`${JSON.stringify(request)}\n`);
  });
}

function startProcess(
  { conf, user, options = {}, prefix = [] }: BridgeOptions,
  onConnect: (client: CephClient) => void,
): Process {
  const [file = PYTHON, ...args] = [...prefix, PYTHON, '-I', PROGRAM];
  const child = spawnChild(file, args, { stdio: 'pipe' });
  const pending: Process['pending'] = new Map();
  const blocked: Process['blocked'] = new Set();
  const lastLines: string[] = [];
  let failure: string | null = null;
  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`${file} cannot be started: ${error.message}`));
    child.once('close', (code, signal) =>
      resolve(failure ?? `${PROGRAM} ended with ${signal ?? `code ${code}`}${lastLines.map((l) => `\n${l}`).join('')}`),
    );
  });
  const started = { child, client: null, pending, blocked, exited };
  // It did not start, and without descriptors it has no pipes.
  if (child.pid === undefined) return started;
  createInterface({ input: child.stderr! }).on('line', (line) => {
    lastLines.push(line);
    if (lastLines.length > LAST_LINES) lastLines.shift();
  });
  createInterface({ input: child.stdout! }).on('line', (line) => {
    const message = messageIn(line);
    if (!message) return;
    if (message.ready) onConnect(message.ready);
    if (message.failed) failure = `cannot connect: ${message.failed.message}`;
    if (message.id === undefined) return;
    if (!message.progress) blocked.delete(message.id);
    const call = pending.get(message.id);
    if (!call) return;
    if (message.progress) call.progress(...message.progress);
    else if (message.error) call.settle(cephError(call.operation, message.error.errno, message.error.message));
    else call.settle(null, message.result);
  });
  // EPIPE: the process died; its exit is reported.
  child.stdin!.on('error', () => undefined);
  child.stdin!.write(`${JSON.stringify({ conf, user, options: { ...LIMITS, ...options } })}\n`);
  return started;
}

/** Null: the process died within the line. Its calls fail when its exit is reported. */
function messageIn(line: string): Message | null {
  try {
    return JSON.parse(line) as Message;
  } catch {
    return null;
  }
}
