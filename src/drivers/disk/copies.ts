/**
 * Copies images. With reflinks a copy takes milliseconds; otherwise the allocated data is copied, which may take hours
 * (long-calls.ts).
 *
 * Invariant: at most one copy to a path runs at a time. It replaces the file at the path when it is complete and durable; an
 * interrupted copy (`cancel`, a crash) leaves that file unchanged. Small and big images have separate queues, so that a big
 * copy does not delay small ones, and the clients take turns in each.
 */
import { constants } from 'node:fs';
import { copyFile, stat } from 'node:fs/promises';
import { onHost, refuseAborted, run } from '../command.ts';
import { limitedByKey } from '../../platform/turns.ts';
import type { Progress } from '../volume.ts';
import { replaceFile } from '../durable-files.ts';
import { createLongCalls } from '../long-calls.ts';
import { extend } from './layout.ts';

interface Copy {
  from: string;
  to: string;
  /** The copy is extended to this size if it is shorter. */
  bytes: number;
  clientId: number;
}

const SMALL_BYTES = 256 * 1024 ** 2;
const CONCURRENT = { small: 8, big: 4 };

/** `reflinks`: whether the filesystem supports them; null: not known. `waitMs`: how long `copy` waits. */
export function createCopies(reflinks: () => Promise<boolean | null>, waitMs?: number) {
  const calls = createLongCalls(waitMs);
  const queues = { small: limitedByKey<number>(CONCURRENT.small), big: limitedByKey<number>(CONCURRENT.big) };
  /** The file that is read and the unfinished one that is written, by the path of the copy. */
  const written = new Map<string, [from: string, unfinished: string]>();

  const perform = async ({ from, to, bytes, clientId }: Copy, cancelled: AbortSignal): Promise<void> => {
    const mayClone = (await reflinks()) ?? true;
    const inTurn = mayClone || (await allocated(from)) <= SMALL_BYTES ? queues.small : queues.big;
    const write = async (unfinished: string) => {
      written.set(to, [from, unfinished]);
      if (!mayClone || !(await cloned(from, unfinished))) {
        // A child process, because Node's copy fills holes and cannot be interrupted.
        const args = ['--reflink=never', '--sparse=auto', '--', from, unfinished];
        await run('cp', args, { signal: cancelled, timeout: 0 });
      }
      await extend(unfinished, bytes);
      refuseAborted(cancelled);
    };
    await inTurn(clientId, () => replaceFile(to, write).finally(() => written.delete(to)), cancelled);
  };

  return {
    /** Stops and discards the copy to a path, if there is one. */
    cancel: calls.cancel,
    cancelAll: calls.cancelAll,
    /** Starts a copy, or waits for the running one. Returns whether it is complete. @throws DriverError if it failed */
    async copy(wanted: Copy, signal: AbortSignal): Promise<boolean> {
      const { from, to } = wanted;
      if (!calls.has(to, from)) await calls.cancel(to);
      return calls.run(to, from, (_onProgress, cancelled) => perform(wanted, cancelled), signal);
    },
    /** How much of the copy to a path is done; null if none is being written. */
    async progress(to: string): Promise<Progress | null> {
      const files = written.get(to);
      const sizes = files && (await Promise.all(files.map(allocated)).catch(() => undefined));
      if (!sizes) return null;
      const [totalBytes = 0, doneBytes = 0] = sizes;
      // Another filesystem may store the same data in more blocks.
      return { doneBytes: Math.min(doneBytes, totalBytes), totalBytes };
    },
  };
}

export type Copies = ReturnType<typeof createCopies>;

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
