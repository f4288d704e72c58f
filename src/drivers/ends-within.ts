/** Waits for work for a limited time, or until a signal aborts. The work itself continues. */
import { setTimeout as sleep } from 'node:timers/promises';
import { refuseAborted } from './command.ts';

/** The result of the work. @throws the reason of the signal when it aborts first */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason as Error);
  signal.addEventListener('abort', abort);
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

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
