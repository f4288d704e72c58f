/**
 * Copies of whole images. Where the filesystem has reflinks a copy takes milliseconds; elsewhere all that is not a hole
 * is copied, which may take hours. So a copy goes on by itself, and whoever wants it waits a moment and asks again.
 *
 * Invariant: there is at most one copy to a path; it gets the path when it is whole and durable, in the place of what was
 * there. A copy that is interrupted (`cancel`, a crash) leaves what was there. Small and big images wait in line apart,
 * so that a big one never holds up many small ones.
 */
import { constants } from 'node:fs';
import { copyFile, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { hostError, refuseAborted, run } from '../command.ts';
import { limited } from '../turns.ts';
import { lengthen, putInPlace } from './layout.ts';

export interface Copy {
  from: string;
  to: string;
  /** The copy is lengthened to this, if it is shorter. */
  bytes: number;
}

export interface Copies {
  /** Begins a copy, or asks for the one that goes on: true when it is done. @throws DriverError that ended it */
  copy(wanted: Copy, signal: AbortSignal): Promise<boolean>;
  /** Ends the copy to a path, if there is one, and forgets it. */
  cancel(to: string): Promise<void>;
  cancelAll(): Promise<void>;
}

interface Running {
  from: string;
  done: Promise<void>;
  controller: AbortController;
}

const PATIENCE_MS = 2000;
const SMALL_BYTES = 256 * 1024 ** 2;
const AT_A_TIME = { small: 8, big: 4 };

/** `reflinks` tells whether the filesystem has them. `patience` is how long `copy` waits, in milliseconds. */
export function createCopies(reflinks: () => boolean, patience = PATIENCE_MS): Copies {
  const running = new Map<string, Running>();
  const lanes = { small: limited(AT_A_TIME.small), big: limited(AT_A_TIME.big) };

  const begin = (wanted: Copy): Running => {
    const controller = new AbortController();
    const done = (async () => {
      const lane = reflinks() || (await allocated(wanted.from)) <= SMALL_BYTES ? lanes.small : lanes.big;
      await lane(() => perform(wanted, reflinks(), controller.signal));
    })();
    // Whoever asks next hears of the failure; there may be nobody for a while.
    done.catch(() => undefined);
    const mine = { from: wanted.from, done, controller };
    running.set(wanted.to, mine);
    return mine;
  };

  const cancel: Copies['cancel'] = async (to) => {
    const mine = running.get(to);
    if (!mine) return;
    mine.controller.abort();
    await mine.done.catch(() => undefined);
    if (running.get(to) === mine) running.delete(to);
  };

  return {
    cancel,
    async copy(wanted, signal) {
      if (running.has(wanted.to) && running.get(wanted.to)!.from !== wanted.from) await cancel(wanted.to);
      const mine = running.get(wanted.to) ?? begin(wanted);
      if (!(await endsWithin(mine.done, patience, signal).catch((err: unknown) => forget(mine, err)))) return false;
      running.delete(wanted.to);
      return true;

      function forget(copy: Running, err: unknown): never {
        if (!signal.aborted && running.get(wanted.to) === copy) running.delete(wanted.to);
        throw err;
      }
    },
    async cancelAll() {
      await Promise.all([...running.keys()].map(cancel));
    },
  };
}

async function perform({ from, to, bytes }: Copy, reflinks: boolean, signal: AbortSignal): Promise<void> {
  refuseAborted(signal);
  await putInPlace(to, async (unfinished) => {
    if (!reflinks || !(await cloned(from, unfinished))) {
      // Not in this process: Node's own copy fills holes, and cannot be interrupted.
      await run('cp', ['--reflink=never', '--sparse=auto', '--', from, unfinished], { signal, timeout: 0 });
    }
    await lengthen(unfinished, bytes);
    refuseAborted(signal);
  });
}

/** False when this file cannot be cloned, for whatever reason that a plain copy may not have. */
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
async function allocated(path: string): Promise<number> {
  try {
    return (await stat(path)).blocks * 512;
  } catch (err) {
    throw hostError(`cannot look at ${path}: ${(err as Error).message}`, err);
  }
}

async function endsWithin(done: Promise<void>, milliseconds: number, signal: AbortSignal): Promise<boolean> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const late = sleep(milliseconds, false, { signal: either }).catch(() => {
    refuseAborted(signal);
    return false;
  });
  try {
    return await Promise.race([done.then(() => true), late]);
  } finally {
    over.abort();
  }
}
