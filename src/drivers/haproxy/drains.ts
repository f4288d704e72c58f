/**
 * Drains removed servers: they get no new connections (maint), open connections end by themselves or at the end of the drain
 * time, and then the server is deleted. `apply` does not wait for that.
 *
 * Failure modes: after a crash the next comparison finds the servers again. HAProxy does not delete a server that is not in
 * maint, so a server that is desired again is safe.
 *
 * Workers that a reload replaced also have connections to removed members. They reject commands about servers ("Proxy is
 * disabled"), so at the deadline their sessions are listed and ended one by one, until a list of every old worker has none.
 */
import type { Logger } from '../../platform/log.ts';
import { command } from './quote.ts';
import { parseServersState } from './servers.ts';
import type { HaproxyProcess } from './process.ts';

interface Drain {
  backend: string;
  /** `<backend>/<server>`. */
  path: string;
  deadline: number;
}

type DrainedProcess = Pick<HaproxyProcess, 'ask' | 'oldWorkers' | 'askOldWorker'>;

const MIN_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1_000;

/** `drainSeconds`: until connections to a server that was not kept are closed. */
export function createDrains(process: DrainedProcess, drainSeconds: number, log: Logger) {
  const draining = new Map<string, Drain>();
  let timer: NodeJS.Timeout | null = null;
  let pause = MIN_PAUSE_MS;
  let stopped = false;

  function schedule(): void {
    if (timer || stopped || draining.size === 0) return;
    timer = setTimeout(async () => {
      await step(process, draining).catch((err: unknown) => log.debug({ err }, 'cannot delete drained servers yet'));
      timer = null;
      pause = Math.min(pause * 2, MAX_PAUSE_MS);
      schedule();
    }, pause);
    timer.unref();
  }

  return {
    /** `kept`: the member remains in another role, so its connections are never closed. */
    add(backend: string, server: string, { kept }: { kept: boolean }): void {
      const path = `${backend}/${server}`;
      if (draining.has(path)) return;
      const deadline = kept ? Number.POSITIVE_INFINITY : performance.now() + drainSeconds * 1000;
      draining.set(path, { backend, path, deadline });
      pause = MIN_PAUSE_MS;
      schedule();
    },
    /** The server is desired again. */
    cancel: (backend: string, server: string) => void draining.delete(`${backend}/${server}`),
    stop(): void {
      stopped = true;
      if (timer) clearTimeout(timer);
    },
  };
}

export type Drains = ReturnType<typeof createDrains>;

async function step(process: DrainedProcess, draining: Map<string, Drain>): Promise<void> {
  const all = [...draining.values()];
  const late = all.filter(({ deadline }) => deadline <= performance.now());
  const end = late.map(({ path }) => command('shutdown', 'sessions', 'server', path));
  const old = await process.oldWorkers();
  // A drain whose deadline passes during this step ends in a later one.
  const ended = new Set(old.length === 0 ? all : late);
  if (late.length > 0)
    for (const pid of old) for (const drain of await endSessions(process, pid, late)) ended.delete(drain);
  const backends = [...new Set(all.map(({ backend }) => backend))];
  const remove = all.map(({ path }) => command('del', 'server', path));
  const read = backends.map((backend) => command('show', 'servers', 'state', backend));
  await process.ask([...end, ...remove]);
  const left = new Set(parseServersState(await process.ask(read)).map(({ backend, name }) => `${backend}/${name}`));
  for (const drain of all) {
    if (!left.has(drain.path) && ended.has(drain) && draining.get(drain.path) === drain) draining.delete(drain.path);
  }
}

/** Returns the drains that had sessions, or may have some. */
async function endSessions(process: DrainedProcess, pid: number, late: Drain[]): Promise<Drain[]> {
  const servers = new Set(late.map(({ path }) => path));
  const sessions = await process.askOldWorker(pid, ['show sess']);
  // A list has at least its own session. If the worker has ended, the next step does not find it.
  if (sessions === '') return late;
  const found = [...sessions.matchAll(/^(0x[0-9a-f]+): .* be=(\S+) srv=(\S+) /gm)];
  const end = found.filter(([, , backend, server]) => servers.has(`${backend}/${server}`));
  if (end.length > 0)
    await process.askOldWorker(
      pid,
      end.map(([, session]) => command('shutdown', 'session', session ?? '')),
    );
  const withSessions = new Set(end.map(([, , backend, server]) => `${backend}/${server}`));
  return late.filter(({ path }) => withSessions.has(path));
}
