/**
 * The worker: runs reconciles and one-shot jobs through graphile-worker, sends a heartbeat, scans for pending and drifted
 * resources, and releases the jobs of dead workers (pools.ts).
 *
 * Failure modes: without the database all of this waits and retries. A periodic duty that fails is logged and runs again.
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeWorkerUtils } from 'graphile-worker';
import type { CleanupTask, JobHelpers, TaskList } from 'graphile-worker';
import type { Logger } from 'pino';
import type { DriverStatus } from '../platform/driver-status.ts';
import type { Db } from '../platform/db.ts';
import { createDeadJobRelease, startPools, traceOnly } from './pools.ts';
import type { PoolOptions } from './pools.ts';
import { clientFlag, rebasePriorities, sweepPriority } from './priority.ts';
import { addJob, deleteIdleQueues, hasJob } from './queue.ts';
import { maxAttempts, runReconcile } from './reconcile.ts';
import type { Reconciler, ReconcileDeps } from './reconcile.ts';
import type { Placed } from './tasks.ts';

const heartbeatSeconds = 2;
const pendingScanSeconds = 10;
const rebaseSeconds = 10;
const idleQueueSeconds = 5;
const cleanupSeconds = 3600;
/** A job that was replaced while it ran, and whose worker then died, stays in the queue as permanently failed. */
const cleanupTasks: CleanupTask[] = ['DELETE_PERMAFAILED_JOBS'];

export interface WorkerOptions extends ReconcileDeps, PoolOptions {
  regionIds: number[];
  sweepSeconds: number;
  reconcilers: Reconciler[];
  /** One-shot jobs by name. Any worker may run them, whatever its regions. */
  jobs?: Record<string, Job>;
  driverStatus(): DriverStatus[];
  /** Further periodic duties. */
  duties?: { seconds: number; work(signal: AbortSignal): Promise<unknown> }[];
}

/** Runs one job. Its payload is untrusted input. @throws to have the queue retry the job with backoff */
export type Job = (payload: Record<string, unknown>, shutdown: AbortSignal) => Promise<void>;

export interface Worker {
  /** Fetches no more jobs and waits for the running ones. */
  stop(): Promise<void>;
}

export async function startWorker(options: WorkerOptions): Promise<Worker> {
  const { db, log } = options;
  const shutdown = new AbortController();
  const id = `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`;
  const utils = await makeWorkerUtils({ pgPool: db.$client, logger: traceOnly(log) });
  const pools = await startPools(options, handlersOf(options, shutdown.signal), shutdown.signal);
  await sendHeartbeat(options, id);
  const releaseDeadJobs = createDeadJobRelease(db, utils, log);
  await releaseDeadJobs().catch((error: unknown) => log.warn({ err: error }, 'scan for dead workers failed'));
  await requeueDrifted(options).catch((error: unknown) => log.warn({ err: error }, 'scan for drift failed'));
  const every = (seconds: number, work: (signal: AbortSignal) => Promise<unknown>) =>
    repeat(seconds, shutdown.signal, log, work);
  const duties = [
    every(heartbeatSeconds, () => sendHeartbeat(options, id)),
    every(heartbeatSeconds, releaseDeadJobs),
    every(pendingScanSeconds, () => requeuePending(options)),
    every(rebaseSeconds, () => rebasePriorities(db, options.regionIds)),
    every(options.sweepSeconds, () => requeueDrifted(options)),
    ...(options.duties ?? []).map(({ seconds, work }) => every(seconds, work)),
    every(cleanupSeconds, () => utils.cleanup({ tasks: cleanupTasks })),
    every(idleQueueSeconds, () => deleteIdleQueues(db)),
    every(cleanupSeconds, () => deleteDeadWorkers(db)),
  ];
  return {
    async stop() {
      shutdown.abort(new Error('the worker is stopping'));
      await Promise.all(duties);
      await pools.stop();
      await db.$client.query('delete from workers where id = $1', [id]).catch(() => {});
      await utils.release();
    },
  };
}

function handlersOf(options: WorkerOptions, shutdown: AbortSignal): TaskList {
  const reconcilers = new Map(options.reconcilers.map((r) => [r.resource, r]));
  const reconcile = (regionId: number) => async (payload: unknown, helpers: Pick<JobHelpers, 'job'>) => {
    const { resource, id } = parsePayload(payload);
    const reconciler = reconcilers.get(resource);
    if (!reconciler) throw new Error(`no reconciler for ${resource}`);
    await runReconcile(options, reconciler, { resource, id, regionId }, helpers.job, shutdown);
  };
  const jobs = Object.entries(options.jobs ?? {}).map(([name, job]) => [
    name,
    (payload: unknown) => job((payload ?? {}) as Record<string, unknown>, shutdown),
  ]);
  return Object.fromEntries([
    ...options.regionIds.map((regionId) => [`reconcile:${regionId}`, reconcile(regionId)]),
    ...jobs,
  ]);
}

/** An older version may have stored the payload, so it is checked like any other input. */
function parsePayload(payload: unknown): { resource: string; id: string } {
  const { resource, id } = (payload ?? {}) as Record<string, unknown>;
  if (typeof resource !== 'string' || typeof id !== 'string') throw new Error('the job names no resource');
  return { resource, id };
}

/** Uses the clock of the database, which is what readers compare `seen_at` with. */
async function sendHeartbeat(options: WorkerOptions, id: string): Promise<void> {
  await options.db.$client.query({
    name: 'worker_heartbeat',
    text: `insert into workers (id, host, pid, region_ids, drivers, started_at, seen_at) values ($1, $2, $3, $4, $5, now(), now())
           on conflict (id) do update set drivers = excluded.drivers, seen_at = excluded.seen_at`,
    values: [id, hostname(), process.pid, options.regionIds, JSON.stringify(options.driverStatus())],
  });
}

async function deleteDeadWorkers(db: Db): Promise<void> {
  await db.$client.query(`delete from workers where seen_at < now() - interval '1 day'`);
}

/** Adds jobs for pending rows that have none: the job was lost, or the queue gave up on it. */
async function requeuePending({ db, regionIds, reconcilers }: WorkerOptions): Promise<void> {
  for (const reconciler of reconcilers) {
    await enqueueMissing(db, reconciler, await reconciler.findPending(db, regionIds));
  }
}

async function requeueDrifted({ db, regionIds, reconcilers }: WorkerOptions): Promise<void> {
  for (const reconciler of reconcilers) {
    await enqueueMissing(db, reconciler, await reconciler.findDrift(db, regionIds));
  }
}

const reconcileKey = `$1::text || ':' || found.id`;
const enqueueMissingJobs = `
  select ${addJob(`'reconcile:' || found.region_id`, `'resource', $1::text, 'id', found.id`, {
    queue_name: reconcileKey,
    job_key: reconcileKey,
    priority: String(sweepPriority),
    flags: `array[${clientFlag.sql('found.client_id')}]`,
  })}
  from unnest($2::text[], $3::int[], $5::int[]) as found (id, region_id, client_id)
  where not ${hasJob(reconcileKey, '$4')}`;

/**
 * Adds jobs at the lowest priority, and leaves existing jobs unchanged. A job that used up its attempts counts as missing:
 * only a broken database brings one so far, and the queue would hold it back for hours.
 */
async function enqueueMissing(db: Db, { resource }: Reconciler, found: Placed[]): Promise<void> {
  if (found.length === 0) return;
  await db.$client.query(enqueueMissingJobs, [
    resource,
    found.map((row) => row.id),
    found.map((row) => row.regionId),
    maxAttempts,
    found.map((row) => row.clientId),
  ]);
}

/** Runs `work` periodically until the signal aborts. A failure is logged; the next run tries again. */
async function repeat(
  seconds: number,
  signal: AbortSignal,
  log: Logger,
  work: (signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  for (;;) {
    await sleep(seconds * 1000, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    await work(signal).catch((error: unknown) => {
      if (!signal.aborted) log.warn({ err: error }, 'periodic duty of the worker failed');
    });
  }
}
