/**
 * Calls that may take hours, such as copies, one for each key. They run in the background, because waiting would occupy a job slot:
 * callers wait briefly and call again. A call that failed is forgotten, so that the next caller starts it again.
 */
import { endsWithin } from './ends-within.ts';
import type { Progress } from './volume.ts';

interface LongCall {
  what: string;
  done: Promise<void>;
  hasEnded: boolean;
  progress: Progress | null;
  ending: AbortController;
}

/** `cancelled`: aborts when the result is not needed any more. */
type Work = (onProgress: (progress: Progress) => void, cancelled: AbortSignal) => Promise<void>;

const WAIT_MS = 2000;

/** `waitMs`: how long `run` waits for a call. */
export function createLongCalls(waitMs = WAIT_MS) {
  const calls = new Map<string, LongCall>();
  const start = (key: string, what: string, work: Work): LongCall => {
    const ending = new AbortController();
    const done = work((progress) => void (call.progress = progress), ending.signal);
    const call: LongCall = { what, done, hasEnded: false, progress: null, ending };
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
  /** Ends the call of a key, if its work can be cancelled, and discards its result. */
  const cancel = async (key: string): Promise<void> => {
    const call = calls.get(key);
    if (!call) return;
    call.ending.abort();
    await call.done.catch(() => undefined);
    if (calls.get(key) === call) calls.delete(key);
  };
  return {
    cancel,
    cancelAll: async () => void (await Promise.all([...calls.keys()].map(cancel))),
    /**
     * Starts the work, or waits for the running call of the key. Returns whether it has ended. Other work (`what`) of the key
     * ends first.
     */
    async run(key: string, what: string, work: Work, signal: AbortSignal): Promise<boolean> {
      const earlier = calls.get(key);
      if (earlier && earlier.what !== what && !(await wait(key, earlier, signal).catch(() => true))) return false;
      return wait(key, calls.get(key) ?? start(key, what, work), signal);
    },
    /** Whether the key has a call whose result no caller has got; of this work, if it is given. */
    has: (key: string, what = calls.get(key)?.what) => calls.has(key) && calls.get(key)?.what === what,
    isRunning: (key: string) => calls.get(key)?.hasEnded === false,
    /** Discards the result of a call that has ended. */
    forget(key: string): void {
      if (calls.get(key)?.hasEnded) calls.delete(key);
    },
    progress: (key: string) => calls.get(key)?.progress ?? null,
  };
}

export type LongCalls = ReturnType<typeof createLongCalls>;
