/**
 * Periodic duties of a worker. The first run of a long interval comes soon after the start, because many processes end
 * before an hour has passed: a laptop's, a test system's, one that is upgraded daily. It is spread at random, so that
 * processes that start together do not all work at the same time.
 *
 * Failure modes: a run that fails is logged; the next one tries again.
 */
import { setTimeout } from 'node:timers/promises';
import type { Logger } from '../platform/log.ts';

export interface Duty {
  /** The interval between the end of a run and the next one. */
  seconds: number;
  work(signal: AbortSignal): Promise<unknown>;
}

interface RepeatOptions {
  signal: AbortSignal;
  log: Logger;
  /** Seconds before the first run; by default `firstDelay`. */
  firstSeconds?: number;
  /** Divides the delays; default: 1. */
  pace?(): number;
  /** For tests. */
  sleep?(milliseconds: number, signal: AbortSignal): Promise<void>;
}

/** The bounds of the delay before the first run, unless the interval is shorter. */
const firstFrom = 20;
const firstTo = 60;

const firstDelay = (seconds: number): number => Math.min(seconds, firstFrom + Math.random() * (firstTo - firstFrom));

/** Runs a duty periodically until the signal aborts. */
export async function repeat({ seconds, work }: Duty, options: RepeatOptions): Promise<void> {
  const { signal, log, firstSeconds = firstDelay(seconds), pace = () => 1, sleep = sleepUntilAborted } = options;
  for (let delay = firstSeconds; ; delay = seconds) {
    await sleep((delay * 1000) / pace(), signal);
    if (signal.aborted) return;
    await work(signal).catch((error: unknown) => {
      if (!signal.aborted) log.warn({ err: error }, 'periodic duty of the worker failed');
    });
  }
}

const sleepUntilAborted = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  setTimeout(milliseconds, undefined, { signal }).catch(() => {});
