/** Runs one reconcile and records its outcome. What a failure leads to is decided here and nowhere else. */
import { DriverError } from '../errors/driver-error.ts';
import { type Db, transaction, type Tx } from '../platform/db.ts';
import { exceededTimeLimit, isUnavailable } from '../platform/db-errors.ts';
import type { Logger } from '../platform/log.ts';
import type { AssignedJob } from './jobs.ts';
import { backoffSeconds, type JobEnd } from './running-jobs.ts';
import type { Placed, Tasks } from './tasks.ts';

export type Outcome =
  /** The desired state is observed and recorded. */
  | { kind: 'done' }
  /** In progress without an error: reconcile again after some seconds. */
  | { kind: 'again'; afterSeconds: number }
  /** A retryable error: retried with backoff, for longer after a shortage or with a finite `maxRetrySeconds`; then as `failed`. */
  | { kind: 'retry'; message: string; cause: unknown; shortage: boolean; maxRetrySeconds: number }
  /** A permanent error: the task ends in ERROR with this message for the customer. */
  | { kind: 'failed'; message: string; cause?: unknown };

/** Reconciles one kind of resource. Level-triggered: it gets an id and reads everything else from the rows. */
export interface Reconciler {
  /** Such as `file_share`: the kind of its jobs. */
  resource: string;
  /**
   * Applies the desired state of the row and records what was observed. Idempotent; may be killed at any point. Calls
   * `noteGeneration` with the generation that it read, before it changes anything.
   */
  reconcile(id: string, signal: AbortSignal, noteGeneration: (generation: number) => void): Promise<Outcome>;
  /**
   * Records in the row that a generation failed permanently. A row with a newer generation keeps its state: that generation
   * has its own job, which alone may record its failure.
   */
  recordFailure(tx: Tx, id: string, generation: number, message: string): Promise<void>;
  /** Rows in these regions whose desired state has not been observed (observed_generation < generation). */
  findPending(db: Db, regionIds: number[]): Promise<Placed[]>;
  /** Compares rows with the host: returns the resources to reconcile, and quarantines those without a row. */
  findDrift(db: Db, regionIds: number[], log: Logger): Promise<Placed[]>;
}

/** The delays between attempts are 2.7, 7.4, 20, 55 and then always 148 s (running-jobs.ts): four minutes in all. */
const maxAttempts = 6;
/** An hour: an operator has to add space to the host, or to raise a time limit of the database. */
const maxAttemptsInShortage = 29;
const secondsInShortage = 3600;
const attemptMs = 10 * 60_000;

export interface ReconcileDeps {
  db: Db;
  tasks: Tasks;
  log: Logger;
  /** `isShortage`: an operator has to act, and the attempts go on for an hour. */
  onDriverError(resource: string, isShortage: boolean): void;
}

/** @throws to have the job repeated */
export async function runReconcile(
  deps: ReconcileDeps,
  reconciler: Reconciler,
  { id, attempt }: Pick<AssignedJob, 'id' | 'attempt'>,
  signal: AbortSignal,
): Promise<JobEnd> {
  const { resource } = reconciler;
  const log = deps.log.child({ resource, id, attempt });
  const { outcome, generation } = await attemptOutcome(reconciler, id, signal);
  switch (outcome.kind) {
    case 'done':
      return { done: true };
    case 'again':
      return { againAfter: outcome.afterSeconds, attempts: 0 };
    case 'retry':
      deps.onDriverError(resource, isShortage(outcome));
      log.warn({ err: outcome.cause }, 'reconcile attempt failed');
      if (attempt < attemptsOf(outcome)) {
        await deps.tasks.recordRetry(deps.db, id, attempt, outcome.message);
        const againAfter = Math.min(backoffSeconds(attempt), outcome.maxRetrySeconds);
        return { againAfter, attempts: attempt };
      }
      await recordFailure(deps, reconciler, id, generation, outcome.message);
      return { done: true };
    case 'failed':
      deps.onDriverError(resource, false);
      log.error({ err: outcome.cause }, 'reconcile failed permanently');
      await recordFailure(deps, reconciler, id, generation, outcome.message);
      return { done: true };
  }
}

type Retry = Extract<Outcome, { kind: 'retry' }>;

function attemptsOf(outcome: Retry): number {
  const { maxRetrySeconds } = outcome;
  if (Number.isFinite(maxRetrySeconds)) return secondsInShortage / maxRetrySeconds;
  return isShortage(outcome) ? maxAttemptsInShortage : maxAttempts;
}

/** Waits that end without an operator, for another host or for a port, have a bound on their delays. */
function isShortage({ shortage, maxRetrySeconds }: Retry): boolean {
  return shortage && !Number.isFinite(maxRetrySeconds);
}

/** `generation` is the attempted one; null when the attempt failed before it read the row. */
async function attemptOutcome(
  reconciler: Reconciler,
  id: string,
  stopping: AbortSignal,
): Promise<{ outcome: Outcome; generation: number | null }> {
  let generation: number | null = null;
  const noteGeneration = (read: number) => {
    generation = read;
  };
  try {
    const outcome = await withinTimeLimit(stopping, (signal) => reconciler.reconcile(id, signal, noteGeneration));
    return { outcome, generation };
  } catch (error) {
    // A shutdown is not a failure of the resource, so nothing is recorded.
    if (stopping.aborted) throw error;
    return { outcome: outcomeOf(error, `${reconciler.resource} ${id}`), generation };
  }
}

/** @throws the error if the database is away, which is not a failure of the resource either */
function outcomeOf(error: unknown, resource: string): Outcome {
  // Checked first: the cause of a driver error may look like a broken database connection (ENOENT, ECONNREFUSED).
  if (error instanceof DriverError) {
    const { customerMessage: message, shortage, maxRetrySeconds } = error;
    return { kind: error.retryable ? 'retry' : 'failed', message, cause: error, shortage, maxRetrySeconds };
  }
  const timeLimit = exceededTimeLimit(error);
  if (timeLimit === null && isUnavailable(error)) throw error;
  const message =
    timeLimit === null ? `internal error; see the server log for ${resource}` : exceededMessage(timeLimit);
  const maxRetrySeconds = Number.POSITIVE_INFINITY;
  return { kind: 'retry', message, cause: error, shortage: timeLimit !== null, maxRetrySeconds };
}

function exceededMessage(timeLimit: string): string {
  if (timeLimit === 'lock_timeout') return 'another session of the database locks what the task needs (lock_timeout)';
  return `a statement in the database exceeded its ${timeLimit}; the operator may have to raise this setting`;
}

/** Not by AbortSignal.timeout, whose timer outlives the attempt: a busy worker would have hundreds of thousands of them. */
async function withinTimeLimit<T>(stopping: AbortSignal, attempt: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(new DOMException('attempt took too long', 'TimeoutError')), attemptMs);
  try {
    return await attempt(AbortSignal.any([stopping, limit.signal]));
  } finally {
    clearTimeout(timer);
  }
}

async function recordFailure(
  deps: ReconcileDeps,
  reconciler: Reconciler,
  id: string,
  generation: number | null,
  message: string,
): Promise<void> {
  // If the row could not be read, every task that waits for the resource has failed.
  const failed = generation ?? Number.MAX_SAFE_INTEGER;
  await transaction(deps.db, async (tx) => {
    await reconciler.recordFailure(tx, id, failed, message);
    await deps.tasks.fail(tx, id, failed, message);
  });
}
