/**
 * Runs one reconcile and turns its outcome into states. The one place that knows what becomes of a failure.
 */
import type { Job } from 'graphile-worker';
import type { Logger } from 'pino';
import { DriverError } from '../errors/driver-error.ts';
import { isUnavailable, transaction } from '../platform/db.ts';
import type { Db, Tx } from '../platform/db.ts';
import type { Placed, ResourceKey, Tasks } from './tasks.ts';

export type Outcome =
  /** What was asked is so, and recorded. */
  | { kind: 'done' }
  /** Nothing is wrong, it only takes longer: look again after a time. */
  | { kind: 'again'; afterSeconds: number }
  /** Another try may help: backoff, and after the last one as `failed`. */
  | { kind: 'retry'; message: string; cause: unknown }
  /** No use in trying: the task ends in ERROR with this sentence for the customer. */
  | { kind: 'failed'; message: string; cause?: unknown };

/** Makes one kind of resource real. Level-triggered: given an id it reads everything else from the rows. */
export interface Reconciler {
  /** E.g. `file_share`; the job's payload names it. */
  resource: string;
  /**
   * Brings the world to what the row says, and records what was observed. Idempotent; may be killed anywhere. Tells
   * `attempting` which generation it read, before it does anything about it.
   */
  reconcile(id: string, signal: AbortSignal, attempting: (generation: number) => void): Promise<Outcome>;
  /**
   * Records in the row that a generation failed for good. A row that has moved on keeps its state: the newer generation
   * has a job of its own, and only that one may say that it failed.
   */
  recordFailure(tx: Tx, id: string, generation: number, message: string): Promise<void>;
  /** Rows in these regions whose desired state has not been observed. */
  findPending(db: Db, regionIds: number[]): Promise<Placed[]>;
  /** Compares rows with the host: returns what to reconcile, and takes what has no row at all out of service. */
  findDrift(db: Db, regionIds: number[]): Promise<Placed[]>;
}

/** Waits 2.7, 7.4, 20, 55 and 148 s between tries (graphile-worker's exp(attempt)), some four minutes in all. */
export const maxAttempts = 6;
const reconcileTimeout = 10 * 60_000;

/** Thrown to the queue to ask for its backoff. */
class RetryLater extends Error {}

export interface ReconcileDeps {
  db: Db;
  tasks: Tasks;
  log: Logger;
  onDriverError(resource: string): void;
}

/** Its priority and flags stay with it: see priority.ts. */
export type ReconcileJob = Pick<Job, 'attempts' | 'priority' | 'flags'>;

/** @throws when the job should be tried again later */
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
      await deps.tasks.repeatReconcile(deps.db, key, outcome.afterSeconds, job);
      return;
    case 'retry':
      deps.onDriverError(key.resource);
      log.warn({ err: outcome.cause }, 'reconcile failed');
      if (attempt < maxAttempts) {
        await deps.tasks.noteRetry(deps.db, key.id, attempt, outcome.message);
        throw new RetryLater(outcome.message);
      }
      await recordFailure(deps, reconciler, key, generation, outcome.message);
      return;
    case 'failed':
      deps.onDriverError(key.resource);
      log.error({ err: outcome.cause }, 'reconcile failed for good');
      await recordFailure(deps, reconciler, key, generation, outcome.message);
      return;
  }
}

/** `generation` is what was attempted; null when it failed before it had read the row. */
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
    // This process is stopping, or the database is away: not the resource's fault, so it costs no attempt's verdict.
    if (shutdown.aborted) throw error;
    // First, because the cause of a driver's error may look like a broken connection (ENOENT, ECONNREFUSED), too.
    if (error instanceof DriverError) {
      const kind = error.retryable ? 'retry' : 'failed';
      return { outcome: { kind, message: error.customerMessage, cause: error }, generation };
    }
    if (isUnavailable(error)) throw error;
    const message = 'an internal fault of Cloudyard; the operator finds it in the log';
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
  // Where not even the row could be read, whatever waits for it has failed.
  const failed = generation ?? Number.MAX_SAFE_INTEGER;
  await transaction(deps.db, async (tx) => {
    await reconciler.recordFailure(tx, key.id, failed, message);
    await deps.tasks.fail(tx, key.id, failed, message);
  });
}
