/** Waits for background work for a limited time. */
import { setTimeout as sleep } from 'node:timers/promises';
import { refuseAborted } from './command.ts';

/** Whether the work ended in time; its failure is thrown. @throws DriverError if the signal aborts the wait */
export async function endsWithin(done: Promise<void>, milliseconds: number, signal: AbortSignal): Promise<boolean> {
  const settled = new AbortController();
  const either = AbortSignal.any([signal, settled.signal]);
  const late = sleep(milliseconds, false, { signal: either }).catch(() => {
    refuseAborted(signal);
    return false;
  });
  try {
    return await Promise.race([done.then(() => true), late]);
  } finally {
    settled.abort();
  }
}
