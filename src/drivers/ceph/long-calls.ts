/**
 * Calls that may take hours, one for each key. They run in the background, because waiting would occupy a job slot: callers
 * wait briefly and call again. A call that failed, or whose process died, is forgotten, so that the next caller starts it again.
 */
import { endsWithin } from '../ends-within.ts';
import type { Progress } from '../volume.ts';

interface LongCall {
  what: string;
  done: Promise<void>;
  hasEnded: boolean;
  progress: Progress | null;
}

type Work = (onProgress: (progress: Progress) => void) => Promise<void>;

/** `waitMs`: how long `run` waits for a call. */
export function createLongCalls(waitMs: number) {
  const calls = new Map<string, LongCall>();
  const start = (key: string, what: string, work: Work): LongCall => {
    const done = work((progress) => void (call.progress = progress));
    const call: LongCall = { what, done, hasEnded: false, progress: null };
    const end = () => void (call.hasEnded = true);
    // The next caller gets the failure; there may be none for a while.
    done.then(end, end);
    calls.set(key, call);
    return call;
  };
  const wait = async (key: string, call: LongCall, signal: AbortSignal): Promise<boolean> => {
    let ended = true;
    try {
      ended = await endsWithin(call.done, waitMs, signal);
      return ended;
    } finally {
      if (ended && !signal.aborted && calls.get(key) === call) calls.delete(key);
    }
  };
  return {
    /**
     * Starts the work, or waits for the running call of the key. Returns whether it has ended. Other work (`what`) of the key
     * ends first.
     */
    async run(key: string, what: string, work: Work, signal: AbortSignal): Promise<boolean> {
      const earlier = calls.get(key);
      if (earlier && earlier.what !== what && !(await wait(key, earlier, signal).catch(() => true))) return false;
      return wait(key, calls.get(key) ?? start(key, what, work), signal);
    },
    /** Whether the key has a call whose result no caller has got. */
    has: (key: string) => calls.has(key),
    isRunning: (key: string) => calls.get(key)?.hasEnded === false,
    /** Discards the result of a call that has ended. */
    forget(key: string): void {
      if (calls.get(key)?.hasEnded) calls.delete(key);
    },
    progress: (key: string) => calls.get(key)?.progress ?? null,
  };
}

export type LongCalls = ReturnType<typeof createLongCalls>;
