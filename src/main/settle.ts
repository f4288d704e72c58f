/** What a process does once it has started, and nothing waits for it. */
import type { App } from '../http/app.ts';
import type { Logger } from '../platform/log.ts';

const startupSettledMs = 5000;

/**
 * Later, compiles the shapes that no request has used yet, and returns the memory that loading the modules took: an idle heap
 * does not shrink by itself (docs/decisions/0010). `api` is null in a process that serves no requests.
 */
export function settleAfterStartup(api: App | null, log: Logger): void {
  setTimeout(() => void settle(api, log), startupSettledMs).unref();
}

async function settle(api: App | null, log: Logger): Promise<void> {
  await api?.compileShapes().catch((error: unknown) => log.error({ err: error }, 'a shape cannot be compiled'));
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
