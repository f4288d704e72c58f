/**
 * Copies images. With reflinks a copy takes milliseconds; otherwise the allocated data is copied, which may take hours. So a
 * copy runs in the background, and callers wait briefly and call again.
 *
 * Invariant: at most one copy to a path runs at a time. It replaces the file at the path when it is complete and durable; an
 * interrupted copy (`cancel`, a crash) leaves that file unchanged. Small and big images have separate queues, so that a big
 * copy does not delay small ones.
 */
import { constants } from 'node:fs';
import { copyFile, stat } from 'node:fs/promises';
import { onHost, refuseAborted, run } from '../command.ts';
import { endsWithin } from '../ends-within.ts';
import { limited } from '../../platform/turns.ts';
import type { Progress } from '../volume.ts';
import { replaceFile } from '../durable-files.ts';
import { extend } from './layout.ts';

interface Copy {
  from: string;
  to: string;
  /** The copy is extended to this size if it is shorter. */
  bytes: number;
}

interface Running {
  from: string;
  /** The file that it writes. */
  unfinished?: string;
  done: Promise<void>;
  controller: AbortController;
}

const WAIT_MS = 2000;
const SMALL_BYTES = 256 * 1024 ** 2;
const CONCURRENT = { small: 8, big: 4 };

/** `reflinks`: whether the filesystem supports them; null: not known. `waitMs`: how long `copy` waits. */
export function createCopies(reflinks: () => Promise<boolean | null>, waitMs = WAIT_MS) {
  const running = new Map<string, Running>();
  const queues = { small: limited(CONCURRENT.small), big: limited(CONCURRENT.big) };

  const start = (wanted: Copy): Running => {
    const controller = new AbortController();
    const done = (async (): Promise<void> => {
      const mayClone = (await reflinks()) ?? true;
      const queue = mayClone || (await allocated(wanted.from)) <= SMALL_BYTES ? queues.small : queues.big;
      const onWrite = (unfinished: string) => void (mine.unfinished = unfinished);
      await queue(() => perform(wanted, mayClone, controller.signal, onWrite));
    })();
    // The next call reports the failure; there may be none for a while.
    done.catch(() => undefined);
    const mine: Running = { from: wanted.from, done, controller };
    running.set(wanted.to, mine);
    return mine;
  };

  /** Stops and discards the copy to a path, if there is one. */
  const cancel = async (to: string): Promise<void> => {
    const mine = running.get(to);
    if (!mine) return;
    mine.controller.abort();
    await mine.done.catch(() => undefined);
    if (running.get(to) === mine) running.delete(to);
  };

  return {
    cancel,
    /** Starts a copy, or waits for the running one. Returns whether it is complete. @throws DriverError if it failed */
    async copy(wanted: Copy, signal: AbortSignal): Promise<boolean> {
      const { from, to } = wanted;
      const earlier = running.get(to);
      if (earlier && earlier.from !== from) await cancel(to);
      const mine = running.get(to) ?? start(wanted);
      try {
        if (!(await endsWithin(mine.done, waitMs, signal))) return false;
      } catch (err) {
        if (!signal.aborted && running.get(to) === mine) running.delete(to);
        throw err;
      }
      running.delete(to);
      return true;
    },
    /** How much of the copy to a path is done; null if none runs, or it has not started to write. */
    async progress(to: string): Promise<Progress | null> {
      const { from, unfinished } = running.get(to) ?? {};
      if (from === undefined || unfinished === undefined) return null;
      const sizes = await Promise.all([allocated(unfinished), allocated(from)]).catch(() => null);
      // Another filesystem may store the same data in more blocks.
      return sizes && { doneBytes: Math.min(...sizes), totalBytes: sizes[1] };
    },
    async cancelAll(): Promise<void> {
      await Promise.all([...running.keys()].map(cancel));
    },
  };
}

export type Copies = ReturnType<typeof createCopies>;

async function perform(
  { from, to, bytes }: Copy,
  mayClone: boolean,
  signal: AbortSignal,
  onWrite: (unfinished: string) => void,
): Promise<void> {
  refuseAborted(signal);
  await replaceFile(to, async (unfinished) => {
    onWrite(unfinished);
    if (!mayClone || !(await cloned(from, unfinished))) {
      // A child process, because Node's copy fills holes and cannot be interrupted.
      await run('cp', ['--reflink=never', '--sparse=auto', '--', from, unfinished], { signal, timeout: 0 });
    }
    await extend(unfinished, bytes);
    refuseAborted(signal);
  });
}

/** Returns false if the file cannot be cloned but a plain copy may succeed. */
export async function cloned(from: string, to: string): Promise<boolean> {
  try {
    await copyFile(from, to, constants.COPYFILE_FICLONE_FORCE);
    return true;
  } catch (err) {
    if (['ENOENT', 'ENOSPC', 'EDQUOT', 'EIO'].includes((err as NodeJS.ErrnoException).code ?? '')) throw err;
    return false;
  }
}

/** Bytes that are not holes. */
function allocated(path: string): Promise<number> {
  return onHost(`cannot read ${path}`, async () => (await stat(path)).blocks * 512);
}
