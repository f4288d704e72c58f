/**
 * Servers that nobody wants any more end here. They take no new connection (maint), their open ones end by themselves
 * or after the drain time, then the server is deleted. `apply` does not wait for it.
 *
 * Nothing is remembered over a crash: what a worker has and nobody wants is found by the next comparison. A server that
 * is wanted again meanwhile is no longer ours, and HAProxy itself refuses to delete one that is not in maint.
 *
 * Workers that were replaced by a reload hold connections to removed members too. They take no command about a server any
 * more ("Proxy is disabled"), so at the deadline their sessions are looked for and ended one by one.
 */
import type { Logger } from 'pino';
import { command } from './quote.ts';
import { type ObservedServer, parseServersState } from './servers.ts';
import type { HaproxyProcess } from './process.ts';

export interface Drains {
  /** `kept`: only its role has gone, the member has not; nobody is ever cut off. */
  add(backend: string, server: string, options: { kept: boolean }): void;
  cancel(backend: string, server: string): void;
  stop(): void;
}

interface Drain {
  backend: string;
  server: string;
  deadline: number;
}

const FIRST_TRY_MS = 50;
const LAST_TRY_MS = 1_000;

export function drainsFor(process: HaproxyProcess, drainSeconds: number, log: Logger): Drains {
  const draining = new Map<string, Drain>();
  let timer: NodeJS.Timeout | null = null;
  let pause = FIRST_TRY_MS;
  let stopped = false;

  function schedule(): void {
    if (timer || stopped || draining.size === 0) return;
    timer = setTimeout(async () => {
      await step(process, draining).catch((err: unknown) => log.debug({ err }, 'drained servers are not deleted yet'));
      timer = null;
      pause = Math.min(pause * 2, LAST_TRY_MS);
      schedule();
    }, pause);
    timer.unref();
  }

  return {
    add(backend, server, { kept }) {
      const key = `${backend}/${server}`;
      if (draining.has(key)) return;
      const deadline = kept ? Number.POSITIVE_INFINITY : Date.now() + drainSeconds * 1000;
      draining.set(key, { backend, server, deadline });
      pause = FIRST_TRY_MS;
      schedule();
    },
    cancel: (backend, server) => void draining.delete(`${backend}/${server}`),
    stop() {
      stopped = true;
      if (timer) clearTimeout(timer);
    },
  };
}

async function step(process: HaproxyProcess, draining: Map<string, Drain>): Promise<void> {
  const all = [...draining.values()];
  const late = all.filter(({ deadline }) => deadline <= Date.now());
  const end = late.map(({ backend, server }) => command('shutdown', 'sessions', 'server', `${backend}/${server}`));
  const old = await process.oldWorkers();
  if (late.length > 0) for (const pid of old) await endSessions(process, pid, late);
  const backends = [...new Set(all.map(({ backend }) => backend))];
  const remove = all.map(({ backend, server }) => command('del', 'server', `${backend}/${server}`));
  const look = backends.map((backend) => command('show', 'servers', 'state', backend));
  await process.ask([...end, ...remove]);
  const left = new Set(parseServersState(await process.ask(look)).map(nameOf));
  for (const drain of all) {
    const key = `${drain.backend}/${drain.server}`;
    const told = old.length === 0 || drain.deadline <= Date.now();
    if (!left.has(key) && told && draining.get(key) === drain) draining.delete(key);
  }
}

async function endSessions(process: HaproxyProcess, pid: number, late: Drain[]): Promise<void> {
  const servers = new Set(late.map(({ backend, server }) => `${backend}/${server}`));
  const sessions = await process.askOld(pid, ['show sess']);
  const found = [...sessions.matchAll(/^(0x[0-9a-f]+): .* be=(\S+) srv=(\S+) /gm)];
  const end = found.filter(([, , backend, server]) => servers.has(`${backend}/${server}`));
  if (end.length > 0)
    await process.askOld(
      pid,
      end.map(([, session]) => command('shutdown', 'session', session ?? '')),
    );
}

function nameOf({ backend, name }: ObservedServer): string {
  return `${backend}/${name}`;
}
