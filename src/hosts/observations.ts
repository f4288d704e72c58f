/** Writes what a host has applied, in batches: all observations that arrive during a statement share the next one. */
import { setTimeout as sleep } from 'node:timers/promises';
import { DriverError } from '../errors/driver-error.ts';
import type { Db } from '../platform/db.ts';
import type { Logger } from '../platform/log.ts';
import { type Incarnation, type Observation, observe } from './agent-store.ts';
import { lastOfEach } from './store.ts';
import type { ObservedError } from './table.ts';

const maxBatch = 1000;
const retryMs = 200;

/** Writes until `lost` aborts; statements that fail are repeated. */
export function createObservations(db: Db, host: Incarnation, log: Logger, lost: AbortSignal) {
  let queue: Observation[] = [];
  let writing: Promise<void> | null = null;

  const write = async () => {
    while (queue.length > 0 && !lost.aborted) {
      // A statement can write a row only once.
      const batch = lastOfEach(queue.splice(0, maxBatch));
      try {
        await observe(db, host, batch);
      } catch (error) {
        log.warn({ err: error }, 'cannot report what this host has applied');
        queue = [...batch, ...queue];
        await sleep(retryMs, undefined, { signal: lost }).catch(() => {});
      }
    }
  };
  return {
    add(observation: Observation): void {
      queue.push(observation);
      writing ??= write().finally(() => (writing = null));
    },
    /** Resolves when everything that was added is written, or when the agent has lost its lease. */
    async written(): Promise<void> {
      while (writing) await writing;
    },
  };
}

export type Observations = ReturnType<typeof createObservations>;

/** What the worker gets of an error. */
export function observedError(error: unknown): ObservedError {
  if (error instanceof DriverError) {
    const { message, customerMessage, retryable, shortage } = error;
    return { message, customerMessage, retryable, shortage };
  }
  return {
    message: error instanceof Error ? error.message : String(error),
    customerMessage: 'the host could not apply the change',
    ...{ retryable: true, shortage: false },
  };
}

/** The error of a part, as a DriverError. */
export function asDriverError(error: unknown): DriverError {
  if (error instanceof DriverError) return error;
  const { message, ...options } = observedError(error);
  return new DriverError(message, { ...options, cause: error });
}
