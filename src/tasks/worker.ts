/**
 * The worker: runs reconciles and one-shot jobs (runner.ts), sends a heartbeat, scans for pending and drifted resources, and
 * releases the jobs of dead workers.
 *
 * Failure modes: without the database all of this waits and retries. A periodic duty that fails is logged and runs again.
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { DriverStatus } from '../platform/driver-status.ts';
import { type Db, preparedColumn } from '../platform/db.ts';
import type { Logger } from '../platform/log.ts';
import { type Duty, repeat } from './duties.ts';
import {
  findDeadWorkers,
  hasJob,
  insertJobs,
  notificationQueue,
  regionQueue,
  releaseJobsOf,
  runDistantJobs,
} from './jobs.ts';
import { rebasePriorities, sweepPriority } from './priority.ts';
import { type ReconcileDeps, type Reconciler, runReconcile } from './reconcile.ts';
import { type RunnerOptions, startRunner } from './runner.ts';
import type { RunJob } from './running-jobs.ts';
import type { Placed } from './tasks.ts';

const heartbeatSeconds = 2;
const pendingScanSeconds = 10;
const rebaseSeconds = 10;
const distantScanSeconds = 10;
/**
 * A job that is due later than this was delayed before the clock was set back, and runs now. Twice the longest delay of a job of
 * a region (running-jobs.ts).
 */
const distantSeconds = 300;
/** The same of a notification: a receiver may ask for an hour, and a message may wait for others as long. */
const distantNotificationSeconds = 7200;
const cleanupSeconds = 3600;
/** Lets live workers take their locks again after a restart of PostgreSQL. */
const graceSeconds = 4;

interface WorkerOptions extends ReconcileDeps, Omit<RunnerOptions, 'workerId' | 'queues'> {
  regionIds: number[];
  sweepSeconds: number;
  reconcilers: Reconciler[];
  /** Of one-shot jobs, by kind. A worker that has some runs these jobs, whatever its regions. */
  handlers?: Record<string, JobHandler>;
  driverStatus(): DriverStatus[];
  /** Further periodic duties. */
  duties?: Duty[];
  /** Divides the intervals of `duties`; default: 1. */
  dutyPace?(): number;
}

/** Runs one job for the resource or message with this id. @throws to have it repeated with backoff */
export type JobHandler = (id: string, signal: AbortSignal) => Promise<void>;

export type Worker = Awaited<ReturnType<typeof startWorker>>;

/**
 * Starts the worker. Before it runs jobs, it announces itself, releases the jobs of dead workers, and compares the
 * hosts with the rows. @throws if the database cannot be reached
 */
export async function startWorker(options: WorkerOptions) {
  const { db, log } = options;
  const shutdown = new AbortController();
  const id = `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`;
  await sendHeartbeat(options, id);
  const releaseDeadJobs = createDeadJobRelease(db, log);
  await releaseDeadJobs().catch((error: unknown) => log.warn({ err: error }, 'scan for dead workers failed'));
  await requeueDrifted(options);
  const queues = [...options.regionIds.map(regionQueue), ...(options.handlers ? [notificationQueue] : [])];
  const runner = startRunner({ ...options, workerId: id, queues }, dispatch(options), shutdown.signal);
  const every = (seconds: number, work: Duty['work'], firstSeconds?: number) =>
    repeat({ seconds, work }, { signal: shutdown.signal, log, firstSeconds });
  const duties = [
    every(heartbeatSeconds, () => sendHeartbeat(options, id)),
    every(heartbeatSeconds, releaseDeadJobs),
    every(pendingScanSeconds, () => requeuePending(options)),
    every(rebaseSeconds, () => rebasePriorities(db, queues)),
    every(distantScanSeconds, async () => {
      await runDistantJobs(db, options.regionIds.map(regionQueue), distantSeconds);
      if (options.handlers) await runDistantJobs(db, [notificationQueue], distantNotificationSeconds);
    }),
    // It has just run.
    every(options.sweepSeconds, () => requeueDrifted(options), options.sweepSeconds),
    ...(options.duties ?? []).map((duty) => repeat(duty, { signal: shutdown.signal, log, pace: options.dutyPace })),
    every(cleanupSeconds, () => deleteDeadWorkers(db)),
  ];
  const stop = async () => {
    shutdown.abort(new Error('the worker is stopping'));
    await Promise.all(duties);
    await runner.stop();
    await db.$client.query('delete from workers where id = $1', [id]).catch(() => {});
  };
  let stopped: Promise<void> | undefined;
  /** `stop` fetches no more jobs and waits for the running ones. */
  return { stop: () => (stopped ??= stop()) };
}

function dispatch(options: WorkerOptions): RunJob {
  const reconcilers = new Map(options.reconcilers.map((r) => [r.resource, r]));
  return async (job, signal) => {
    const reconciler = reconcilers.get(job.kind);
    if (reconciler) return runReconcile(options, reconciler, job, signal);
    const handler = options.handlers?.[job.kind];
    if (!handler) throw new Error(`no handler for jobs of the kind ${job.kind}`);
    await handler(job.id, signal);
    return { done: true };
  };
}

/** Returns a function to call periodically: it releases the jobs of workers whose lock was free for `graceSeconds`. */
function createDeadJobRelease(db: Db, log: Logger): () => Promise<void> {
  const missingSince = new Map<string, number>();
  return async () => {
    const missing = new Set(await findDeadWorkers(db));
    for (const worker of missingSince.keys()) if (!missing.has(worker)) missingSince.delete(worker);
    const now = performance.now();
    for (const worker of missing) if (!missingSince.has(worker)) missingSince.set(worker, now);
    const dead = [...missing].filter((worker) => now - missingSince.get(worker)! >= graceSeconds * 1000);
    if (dead.length === 0) return;
    log.warn({ workers: dead }, 'releasing the jobs of dead workers');
    await releaseJobsOf(db, dead);
  };
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

/**
 * Adds jobs for pending rows that have none: the job was lost, or the queue gave up on it. A job that ends after the first read
 * has changed its row: a deletion that failed, for example, must not run again. So the rows are read again once it is known
 * which of them have no job.
 */
export async function requeuePending({ db, regionIds, reconcilers }: RegionsAndReconcilers): Promise<void> {
  for (const reconciler of reconcilers) {
    const without = new Set(
      await withoutJob(db, reconciler.resource, idsOf(await reconciler.findPending(db, regionIds))),
    );
    if (without.size === 0) continue;
    const pending = await reconciler.findPending(db, regionIds);
    await enqueueMissing(
      db,
      reconciler,
      pending.filter(({ id }) => without.has(id)),
    );
  }
}

type RegionsAndReconcilers = Pick<WorkerOptions, 'db' | 'regionIds' | 'reconcilers'>;

const idsOf = (rows: Placed[]) => rows.map(({ id }) => id);

const withoutJob = preparedColumn<string, [resource: string, ids: string[]], Db>(
  'worker_rows_without_job',
  `select id from unnest($2::text[]) as found (id) where not ${hasJob('$1::text', 'found.id')}`,
);

/** A driver that fails does not prevent the comparison of the others. */
async function requeueDrifted({ db, log, regionIds, reconcilers }: WorkerOptions): Promise<void> {
  for (const reconciler of reconcilers) {
    try {
      await enqueueMissing(db, reconciler, await reconciler.findDrift(db, regionIds, log));
    } catch (error) {
      log.warn({ err: error, resource: reconciler.resource }, 'scan for drift failed');
    }
  }
}

const enqueueMissingJobs = insertJobs(
  `select $1::text, found.id, found.queue, found.client_id, ${sweepPriority}, now()
   from unnest($2::text[], $3::text[], $4::int[]) as found (id, queue, client_id)
   where not ${hasJob('$1::text', 'found.id')} order by found.id`,
);

/** Adds jobs at the lowest priority, and leaves existing jobs unchanged. The runner's next poll finds them. */
async function enqueueMissing(db: Db, { resource }: Reconciler, found: Placed[]): Promise<void> {
  if (found.length === 0) return;
  await db.$client.query(enqueueMissingJobs, [
    resource,
    found.map((row) => row.id),
    found.map((row) => regionQueue(row.regionId)),
    found.map((row) => row.clientId),
  ]);
}
