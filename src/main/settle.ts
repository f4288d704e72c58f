/** What a process does once it has started, and nothing waits for it. */
import type { App } from '../http/app.ts';
import type { Logger } from '../platform/log.ts';

const compileAfterMs = 15_000;
const collectAfterMs = 4000;

/**
 * Compiles the shapes that no request has used yet, because the first request of each operation would wait for that. Not
 * at once: after a restart, the backlog of jobs and requests needs the CPU more, and a short-lived server needs few shapes.
 * Later returns the memory that both this and loading the modules took: an idle heap does not shrink by itself
 * (docs/decisions/0010). `api` is null in a process that serves no requests.
 */
export function settleAfterStartup(api: App | null, log: Logger): void {
  const collect = () => globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  const settle = async () => {
    await api?.compileShapes().catch((error: unknown) => log.error({ err: error }, 'a shape cannot be compiled'));
    setTimeout(collect, collectAfterMs).unref();
  };
  setTimeout(() => void settle(), compileAfterMs).unref();
}
