/** Runs one reconcile and records its outcome. What a failure leads to is decided here and nowhere else. */
import type { Job } from 'graphile-worker';
import type { Logger } from 'pino';
import { DriverError } from '../errors/driver-error.ts';
import { isUnavailable, transaction } from '../platform/db.ts';
import type { Db, Tx } from '../platform/db.ts';
import type { Placed, ResourceKey, Tasks } from './tasks.ts';

export type Outcome =
  /** The desired state is observed and recorded. */
  | { kind: 'done' }
  /** In progress without an error: reconcile again after some seconds. */
  | { kind: 'again'; afterSeconds: number }
  /** A retryable error: retried with backoff; the last attempt ends like `failed`. */
  | { kind: 'retry'; message: string; cause: unknown }
  /** A permanent error: the task ends in ERROR with this message for the customer. */
  | { kind: 'failed'; message: string; cause?: unknown };

/** Reconciles one kind of resource. Level-triggered: it gets an id and reads everything else from the rows. */
export interface Reconciler {
  /** E.g. `file_share`; the job's payload names it. */
  resource: string;
  /**
   * Applies the desired state of the row and records what was observed. Idempotent; may be killed at any point. Calls
   * `attempting` with the generation that it read, before it changes anything.
   */
  reconcile(id: string, signal: AbortSignal, attempting: (generation: number) => void): Promise<Outcome>;
  /**
   * Records in the row that a generation failed permanently. A row with a newer generation keeps its state: that generation
   * has its own job, which alone may record its failure.
   */
  recordFailure(tx: Tx, id: string, generation: number, message: string): Promise<void>;
  /** Rows in these regions whose desired state has not been observed (observed_generation < generation). */
  findPending(db: Db, regionIds: number[]): Promise<Placed[]>;
  /** Compares rows with the host: returns the resources to reconcile, and removes what no row describes. */
  findDrift(db: Db, regionIds: number[]): Promise<Placed[]>;
}

/** The delays between attempts are 2.7, 7.4, 20, 55 and 148 s (graphile-worker's exp(attempt)), four minutes in all. */
export const maxAttempts = 6;
const reconcileTimeout = 10 * 60_000;

/** Thrown to have the queue retry with backoff. */
class RetryLater extends Error {}

export interface ReconcileDeps {
  db: Db;
  tasks: Tasks;
  log: Logger;
  onDriverError(resource: string): void;
}

/** A job that is repeated keeps its priority and flags (priority.ts). */
export type ReconcileJob = Pick<Job, 'attempts' | 'priority' | 'flags'>;

/** @throws to have the queue retry the job */
export async function runReconcile(
  deps: ReconcileDeps,
  reconciler: Reconciler,
  key: ResourceKey,
  job: ReconcileJob,
  shutdown: AbortSignal,
): Promise<void> {
  const attempt = job.attempts;
  const log = deps.log.child({ resource: key.resource, id: key.id, attempt });
  await deps.tasks.markRunning(deps.db, key.id);
  const { outcome, generation } = await attemptOutcome(reconciler, key.id, shutdown);
  switch (outcome.kind) {
    case 'done':
      return;
    case 'again':
      await deps.tasks.rescheduleReconcile(deps.db, key, outcome.afterSeconds, job);
      return;
    case 'retry':
      deps.onDriverError(key.resource);
      log.warn({ err: outcome.cause }, 'reconcile attempt failed');
      if (attempt < maxAttempts) {
        await deps.tasks.recordRetry(deps.db, key.id, attempt, outcome.message);
        throw new RetryLater(outcome.message);
      }
      await recordFailure(deps, reconciler, key, generation, outcome.message);
      return;
    case 'failed':
      deps.onDriverError(key.resource);
      log.error({ err: outcome.cause }, 'reconcile failed permanently');
      await recordFailure(deps, reconciler, key, generation, outcome.message);
      return;
  }
}

/** `generation` is what was attempted; null when the attempt failed before it read the row. */
async function attemptOutcome(
  reconciler: Reconciler,
  id: string,
  shutdown: AbortSignal,
): Promise<{ outcome: Outcome; generation: number | null }> {
  let generation: number | null = null;
  const attempting = (read: number) => {
    generation = read;
  };
  const signal = AbortSignal.any([shutdown, AbortSignal.timeout(reconcileTimeout)]);
  try {
    return { outcome: await reconciler.reconcile(id, signal, attempting), generation };
  } catch (error) {
    // A shutdown, or a database that is away (below), is not a failure of the resource, so nothing is recorded.
    if (shutdown.aborted) throw error;
    // Checked first: the cause of a driver error may look like a broken database connection (ENOENT, ECONNREFUSED).
    if (error instanceof DriverError) {
      const kind = error.retryable ? 'retry' : 'failed';
      return { outcome: { kind, message: error.customerMessage, cause: error }, generation };
    }
    if (isUnavailable(error)) throw error;
    const message = `internal error; see the server log for ${reconciler.resource} ${id}`;
    return { outcome: { kind: 'retry', message, cause: error }, generation };
  }
}

async function recordFailure(
  deps: ReconcileDeps,
  reconciler: Reconciler,
  key: ResourceKey,
  generation: number | null,
  message: string,
): Promise<void> {
  // If the row could not be read, every task that waits for the resource has failed.
  const failed = generation ?? Number.MAX_SAFE_INTEGER;
  await transaction(deps.db, async (tx) => {
    await reconciler.recordFailure(tx, key.id, failed, message);
    await deps.tasks.fail(tx, key.id, failed, message);
  });
}
