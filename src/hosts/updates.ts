/** What an agent reads with each renewal of its lease, for its session. */
import { unlessAborted } from '../drivers/ends-within.ts';
import type { HostState, RegionView } from './part.ts';

/** What the last renewal has read. */
export interface Update {
  state: HostState;
  revision: number;
  view: RegionView;
}

/** For one reader: an update that is not read before the next one is replaced by it. */
export function createUpdates() {
  let unread: Update | null = null;
  let wake = Promise.withResolvers<void>();
  return {
    set(update: Update): void {
      unread = update;
      wake.resolve();
    },
    /** The next update, or the last one if nobody has read it. Rejects when `signal` aborts. */
    async next(signal: AbortSignal): Promise<Update> {
      await unlessAborted(wake.promise, signal);
      wake = Promise.withResolvers<void>();
      return unread!;
    },
  };
}

export type Updates = ReturnType<typeof createUpdates>;
