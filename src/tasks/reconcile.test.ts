import { pino } from 'pino';
import { afterEach, expect, it, vi } from 'vitest';
import { DriverError } from '../errors/driver-error.ts';
import type { Db } from '../platform/db.ts';
import { type Outcome, type ReconcileDeps, type Reconciler, runReconcile } from './reconcile.ts';
import type { Tasks } from './tasks.ts';

afterEach(() => void vi.useRealTimers());

const recordRetry = vi.fn<Tasks['recordRetry']>(async () => {});
const onDriverError = vi.fn<ReconcileDeps['onDriverError']>();

/** Runs an attempt of this kind, the first of its job. */
function attempt(reconcile: Reconciler['reconcile']) {
  const deps = { db: {} as Db, tasks: { recordRetry } as unknown as Tasks, log: pino({ level: 'silent' }) };
  const reconciler = { resource: 'file_share', reconcile } as Reconciler;
  const { signal } = new AbortController();
  return runReconcile({ ...deps, onDriverError }, reconciler, { id: 'x', attempt: 1 }, signal);
}

it('an attempt is aborted after ten minutes, and repeated', async () => {
  vi.useFakeTimers();
  const ended = attempt(
    (_, signal) => new Promise<Outcome>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  );
  await vi.advanceTimersByTimeAsync(599_000);
  expect(recordRetry).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1000);
  expect(await ended).toEqual({ againAfter: expect.closeTo(2.7, 1), attempts: 1 });
  expect(recordRetry).toHaveBeenCalledOnce();
});

it('an attempt that has ended leaves no timer', async () => {
  vi.useFakeTimers();
  const timers: number[] = [];
  const reconcile = async (): Promise<Outcome> => {
    timers.push(vi.getTimerCount());
    return { kind: 'done' };
  };
  expect(await attempt(reconcile)).toEqual({ done: true });
  expect([...timers, vi.getTimerCount()]).toEqual([1, 0]);
});

it.each([
  ['a shortage of the host', { shortage: true }, true],
  ['the wait for another host', { shortage: true, maxRetrySeconds: 2 }, false],
  ['another failure', {}, false],
])('%s is counted as what it is', async (_, options, isShortage) => {
  onDriverError.mockClear();
  await attempt(async () => {
    throw new DriverError('mkfs.xfs failed', { customerMessage: 'it failed', retryable: true, ...options });
  });
  expect(onDriverError.mock.calls).toEqual([['file_share', isShortage]]);
});
