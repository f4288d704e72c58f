/** Waits for tasks and reports their progress on standard error. */
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandError, exitCodes } from './errors.ts';
import { type Api, ConnectionError } from './http.ts';

export interface Task {
  id: string;
  state: string;
  task_type: string;
  error: string | null;
  created_resources: Record<string, (string | number)[]> | null;
}

interface Progress {
  /** The states of the tasks changed. */
  update(tasks: Task[]): void;
  /** Before other output, and at the end. */
  clear(): void;
}

/** The server grants at most this. */
const longestPoll = 30;
const retryMs = 500;
/** A first request also with a timeout of 0. */
const shortestMs = 1000;
export const defaultTimeout = 600;

/**
 * Resolves when all tasks have ended. Waits while the server is unavailable.
 * @throws CommandError for a task that failed (1) and after `timeout` seconds (3)
 */
export async function waitForTasks(api: Api, ids: string[], timeout: number, progress: Progress): Promise<Task[]> {
  const deadline = performance.now() + timeout * 1000;
  const tasks = new Map<string, Task>();
  let isOver = false;
  try {
    await Promise.all(
      ids.map(async (id) => {
        for (let isFirst = true; ; isFirst = false) {
          const left = (deadline - performance.now()) / 1000;
          // Another task's request failed: the command ends.
          if (isOver) return;
          if (left <= 0 && !isFirst) throw stillRunning(ids, tasks, timeout);
          const seconds = Math.max(0, Math.min(longestPoll, Math.floor(left)));
          // The server may hang: the response is awaited no longer than the task.
          const signal = AbortSignal.timeout(Math.ceil(Math.max(shortestMs, left * 1000)));
          const task = await poll(api, { id, seconds, deadline, signal }).catch((error: unknown) => {
            throw signal.aborted ? stillRunning(ids, tasks, timeout, error) : error;
          });
          if (task.state !== tasks.get(id)?.state) {
            tasks.set(id, task);
            progress.update([...tasks.values()]);
          }
          if (task.state === 'FINISHED' || task.state === 'ERROR') return;
          // Less than the second that the server's wait is counted in.
          if (seconds === 0) await sleep(Math.max(0, Math.min(200, deadline - performance.now())));
        }
      }),
    );
  } finally {
    isOver = true;
    progress.clear();
  }
  const ended = ids.map((id) => tasks.get(id)!);
  const failed = ended.filter(({ state }) => state === 'ERROR');
  if (failed.length > 0) {
    throw new CommandError(failed.map(({ id, error }) => `task ${id} failed: ${error ?? 'unknown error'}`).join('\n'));
  }
  return ended;
}

interface Poll {
  id: string;
  seconds: number;
  deadline: number;
  signal: AbortSignal;
}

async function poll(api: Api, { id, seconds, deadline, signal }: Poll): Promise<Task> {
  for (;;) {
    try {
      const { body } = await api.send({ method: 'GET', path: `/cloud/v1/tasks/${id}?wait=${seconds}`, signal });
      return body as Task;
    } catch (error) {
      if (!isPassing(error) || performance.now() + retryMs > deadline) throw error;
      await sleep(retryMs);
    }
  }
}

/** A restart of the server, or a proxy without one. */
function isPassing(error: unknown): boolean {
  return error instanceof ConnectionError || [429, 502, 503, 504].includes((error as { status?: number }).status ?? 0);
}

function stillRunning(ids: string[], tasks: Map<string, Task>, timeout: number, cause?: unknown): CommandError {
  const open = ids.filter((id) => !['FINISHED', 'ERROR'].includes(tasks.get(id)?.state ?? ''));
  return new CommandError(`timed out after ${timeout} s; still running: ${open.join(', ')}`, exitCodes.timedOut, cause);
}

/** On a terminal one line that is rewritten; elsewhere a line for each change. */
export function createProgress(stream: { isTTY?: boolean; write(text: string): unknown }, quiet: boolean): Progress {
  if (quiet) return { update: () => {}, clear: () => {} };
  if (stream.isTTY) {
    return {
      update: (tasks) => void stream.write(`\r\u001b[K${tasks.map(describe).join(', ')}`),
      clear: () => void stream.write('\r\u001b[K'),
    };
  }
  const reported = new Map<string, string>();
  return {
    update(tasks) {
      for (const task of tasks) {
        if (reported.get(task.id) === task.state) continue;
        reported.set(task.id, task.state);
        stream.write(`${describe(task)}\n`);
      }
    },
    clear: () => {},
  };
}

function describe({ id, task_type: type, state }: Task): string {
  return `task ${id} (${type}): ${state}`;
}
