/**
 * The worker: runs reconciles for its regions through graphile-worker, beats, sweeps, and takes over from the dead.
 *
 * A worker holds an advisory lock named after its pool for as long as it lives; a job locked by a pool whose lock is
 * free for `grace` belongs to a dead worker and is freed (graphile-worker itself would wait four hours). The grace lets
 * the living take their locks again after PostgreSQL was restarted.
 */
import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { Logger as GraphileLogger, makeWorkerUtils, run } from 'graphile-worker';
import type { CleanupTask, JobHelpers, Runner, WorkerEvents, WorkerUtils } from 'graphile-worker';
import type pg from 'pg';
import type { Logger } from 'pino';
import type { DriverStatus } from '../platform/driver-status.ts';
import { noticeLostHost, openHoldingPool, postgresCode, transaction } from '../platform/db.ts';
import type { Db } from '../platform/db.ts';
import { watchClientSlots } from './client-slots.ts';
import { retryingPool } from './retrying-pool.ts';
import { rebasePriorities, sweepPriority } from './priority.ts';
import { maxAttempts, runReconcile } from './reconcile.ts';
import type { Reconciler, ReconcileDeps } from './reconcile.ts';
import type { Placed } from './tasks.ts';

const beatSeconds = 2;
const graceSeconds = 4;
const unconvergedSeconds = 10;
const rebaseSeconds = 10;
const queueGarbageSeconds = 3600;
/** A job that was replaced while it ran, and whose worker then died, stays as one that has failed for good. */
const garbage: CleanupTask[] = ['DELETE_PERMAFAILED_JOBS'];
/** Every resource that had a job has a queue, and whoever takes a job locks all queues that are free. */
const manyQueues = 500;
const forgetQueuesSeconds = 5;
/** PostgreSQL's code. */
const lockNotAvailable = '55P03';
/** First key of the advisory locks that stand for living pools. */
const poolLocks = 0x636c6f75;

export interface WorkerOptions extends ReconcileDeps {
  regionIds: number[];
  concurrency: number;
  /** Jobs of one client that it runs at once; 0: three quarters of the above. */
  slotsPerClient?: number;
  /** Between two looks for jobs whose time has come; new ones are announced. Default: a second. */
  pollMs?: number;
  sweepSeconds: number;
  reconcilers: Reconciler[];
  /** What else it runs from the queue, in whatever region it works: by the name of the job. */
  jobs?: Record<string, Job>;
  driverStatus(): DriverStatus[];
  /** What else is to be done from time to time, by every worker. */
  duties?: { seconds: number; work(signal: AbortSignal): Promise<unknown> }[];
}

/** Runs one job. Its payload is input like any other. @throws when it should be tried again, after the queue's backoff */
export type Job = (payload: Record<string, unknown>, shutdown: AbortSignal) => Promise<void>;

export interface Worker {
  /** Stops taking jobs and waits for those that run. */
  stop(): Promise<void>;
}

export async function startWorker(options: WorkerOptions): Promise<Worker> {
  const { db, log } = options;
  const shutdown = new AbortController();
  const id = `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`;
  const utils = await makeWorkerUtils({ pgPool: db.$client, logger: quiet(log) });
  const pools = await startPools(options, shutdown.signal);
  await beat(options, id);
  const freeJobsOfTheDead = takeover(db, utils, log);
  await freeJobsOfTheDead().catch((error: unknown) => log.warn({ err: error }, 'dead workers cannot be looked for'));
  await findDrift(options).catch((error: unknown) =>
    log.warn({ err: error }, 'the host cannot be compared with the rows'),
  );
  const timers = [
    every(beatSeconds, shutdown.signal, log, () => beat(options, id)),
    every(beatSeconds, shutdown.signal, log, freeJobsOfTheDead),
    every(unconvergedSeconds, shutdown.signal, log, () => requeueUnconverged(options)),
    every(rebaseSeconds, shutdown.signal, log, () => rebasePriorities(db, options.regionIds)),
    every(options.sweepSeconds, shutdown.signal, log, () => findDrift(options)),
    ...(options.duties ?? []).map(({ seconds, work }) => every(seconds, shutdown.signal, log, work)),
    every(queueGarbageSeconds, shutdown.signal, log, () => utils.cleanup({ tasks: garbage })),
    every(forgetQueuesSeconds, shutdown.signal, log, () => forgetQueues(db)),
    every(queueGarbageSeconds, shutdown.signal, log, () => forgetDeadWorkers(db)),
  ];
  return {
    async stop() {
      shutdown.abort(new Error('the worker is stopping'));
      await Promise.all(timers);
      await pools.stop();
      await db.$client.query('delete from workers where id = $1', [id]).catch(() => {});
      await utils.release();
    },
  };
}

/**
 * Runs graphile-worker pools. One that saw the database break may hold jobs that nobody runs (the answer that gave them
 * to it was lost, or the statement that ends them), so it is retired: it takes no more jobs, ends those that it runs, and
 * lets go of its lock, whereupon `takeover` frees the rest. Another one goes on meanwhile, under a new id. There may be many retired
 * ones: what each holds is not of the connections that they need to end.
 */
async function startPools(options: WorkerOptions, shutdown: AbortSignal): Promise<{ stop(): Promise<void> }> {
  const { db, log } = options;
  const pools = new Map<Runner, Promise<void>>();
  const holding = openHoldingPool(db, log);
  const start = async () => {
    // One that started while there is no database would be the next to be retired.
    await db.$client.query('select');
    const over = new AbortController();
    let runner: Runner | undefined;
    let retired = false;
    const retire = () => {
      if (retired || shutdown.aborted) return;
      retired = true;
      log.warn('the job queue lost the database; starting another one');
      void runner?.stop().catch(() => {});
      starting = retry(shutdown, start);
    };
    const events: WorkerEvents = new EventEmitter();
    events.on('pool:create', ({ workerPool }) => void keepLock(holding, workerPool.id, over.signal, retire));
    const { concurrency } = options;
    const slots = options.slotsPerClient || Math.ceil(concurrency * 0.75);
    const mine = (runner = await run({
      ...(slots < concurrency && { forbiddenFlags: watchClientSlots(events, slots) }),
      pgPool: retryingPool(db.$client, holding, shutdown, retire),
      concurrency,
      taskList: taskList(options, shutdown),
      noHandleSignals: true,
      pollInterval: options.pollMs ?? 1000,
      events,
      logger: quiet(log),
    }));
    const end = () => {
      over.abort();
      pools.delete(mine);
      retire();
    };
    // It resolves as well when the pool gave up.
    pools.set(mine, mine.promise.then(end, end));
    // Lost while it came to be.
    if (retired) void mine.stop().catch(() => {});
  };
  let starting = start();
  await starting;
  return {
    async stop() {
      await starting;
      for (const runner of pools.keys()) void runner.stop().catch(() => {});
      await Promise.all(pools.values());
      await holding.end();
    },
  };
}

/** Holds the pool's lock until `over`, on another connection when one is lost; calls `lost` each time. */
async function keepLock(holding: pg.Pool, poolId: string, over: AbortSignal, lost: () => void): Promise<void> {
  const ended = new Promise<void>((resolve) => over.addEventListener('abort', () => resolve()));
  while (!over.aborted) {
    await retry(over, async () => {
      const client = await holding.connect();
      const broken = new Promise<void>((resolve) => client.once('end', resolve));
      try {
        await client.query(noticeLostHost);
        await client.query('select pg_advisory_lock($1, hashtext($2))', [poolLocks, poolId]);
        await Promise.race([broken, ended]);
      } finally {
        client.release(true);
      }
    });
    if (!over.aborted) lost();
  }
}

function taskList(options: WorkerOptions, shutdown: AbortSignal) {
  const reconcilers = new Map(options.reconcilers.map((r) => [r.resource, r]));
  const handler = (regionId: number) => async (payload: unknown, helpers: Pick<JobHelpers, 'job'>) => {
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
    ...options.regionIds.map((regionId) => [`reconcile:${regionId}`, handler(regionId)]),
    ...jobs,
  ]);
}

/** Stored payloads may be of an older version: they are input like any other. */
function parsePayload(payload: unknown): { resource: string; id: string } {
  const { resource, id } = (payload ?? {}) as Record<string, unknown>;
  if (typeof resource !== 'string' || typeof id !== 'string') throw new Error('the job names no resource');
  return { resource, id };
}

async function beat(options: WorkerOptions, id: string): Promise<void> {
  // In the time of the database, which is what others compare it with.
  await options.db.$client.query({
    name: 'worker_beat',
    text: `insert into workers (id, host, pid, region_ids, drivers, started_at, seen_at) values ($1, $2, $3, $4, $5, now(), now())
           on conflict (id) do update set drivers = excluded.drivers, seen_at = excluded.seen_at`,
    values: [id, hostname(), process.pid, options.regionIds, JSON.stringify(options.driverStatus())],
  });
}

/**
 * Forgets queues that no job is in, when there are many. It keeps everybody from adding jobs meanwhile: the queue of a job
 * that is not yet committed would go (as in graphile-worker's own GC_JOB_QUEUES), and nobody would ever take the job. Who
 * adds one waits for it no longer than this waits for its turn; where that does not come it is for the next time.
 */
async function forgetQueues(db: Db): Promise<void> {
  const { rows } = await db.$client.query('select from graphile_worker._private_job_queues limit $1', [manyQueues]);
  if (rows.length < manyQueues) return;
  await transaction(db, async ({ $client }) => {
    await $client.query(`set local lock_timeout = '50ms'`);
    await $client.query('lock table graphile_worker._private_job_queues in share row exclusive mode');
    await $client.query(
      `delete from graphile_worker._private_job_queues q where locked_at is null and not exists (
         select from graphile_worker._private_jobs j where j.job_queue_id = q.id)`,
    );
  }).catch((error: unknown) => {
    if (postgresCode(error) !== lockNotAvailable) throw error;
  });
}

async function forgetDeadWorkers(db: Db): Promise<void> {
  await db.$client.query(`delete from workers where seen_at < now() - interval '1 day'`);
}

/** Frees the jobs of pools that were seen without their lock for `graceSeconds`. */
function takeover(db: Db, utils: WorkerUtils, log: Logger): () => Promise<void> {
  const missingSince = new Map<string, number>();
  return async () => {
    const { rows } = await db.$client.query<{ pool: string }>({
      name: 'worker_dead_pools',
      text: `select pool from (
               select locked_by as pool from graphile_worker._private_jobs where locked_by is not null
               union select locked_by from graphile_worker._private_job_queues where locked_by is not null) as holders
             where not exists (
               select from pg_locks where locktype = 'advisory' and granted
                 and classid = $1::int8::oid and objid = (hashtext(pool)::int8 & 4294967295)::oid and objsubid = 2)`,
      values: [poolLocks],
    });
    const missing = new Set(rows.map((row) => row.pool));
    for (const pool of missingSince.keys()) if (!missing.has(pool)) missingSince.delete(pool);
    const now = performance.now();
    for (const pool of missing) if (!missingSince.has(pool)) missingSince.set(pool, now);
    const dead = [...missing].filter((pool) => now - missingSince.get(pool)! >= graceSeconds * 1000);
    if (dead.length === 0) return;
    log.warn({ pools: dead }, 'taking over the jobs of dead workers');
    await utils.forceUnlockWorkers(dead);
  };
}

/** What has a row but no job (lost, or given up on by the queue) gets one. */
async function requeueUnconverged(options: WorkerOptions): Promise<void> {
  for (const reconciler of options.reconcilers) {
    await enqueueAll(options.db, reconciler, await reconciler.findPending(options.db, options.regionIds));
  }
}

async function findDrift(options: WorkerOptions): Promise<void> {
  for (const reconciler of options.reconcilers) {
    await enqueueAll(options.db, reconciler, await reconciler.findDrift(options.db, options.regionIds));
  }
}

/**
 * Leaves a job that is there as it is, and waits behind what customers wait for. A job that has used up its attempts is
 * there no more: only a broken database can have brought it so far, and the queue would let it wait for hours.
 */
async function enqueueAll(db: Db, { resource }: Reconciler, found: Placed[]): Promise<void> {
  if (found.length === 0) return;
  await db.$client.query(
    `select graphile_worker.add_job('reconcile:' || found.region_id, json_build_object('resource', $1::text, 'id', found.id),
       queue_name => $1::text || ':' || found.id, job_key => $1::text || ':' || found.id, priority => ${sweepPriority}, flags => array['client:' || found.client_id])
     from unnest($2::text[], $3::int[], $5::int[]) as found (id, region_id, client_id)
     where not exists (
       select from graphile_worker.jobs j
       where j.key = $1::text || ':' || found.id and (j.attempts < $4 or j.locked_at is not null))`,
    [
      resource,
      found.map((row) => row.id),
      found.map((row) => row.regionId),
      maxAttempts,
      found.map((row) => row.clientId),
    ],
  );
}

/** Runs `work` again and again until the signal; a failure is logged and the next turn tries anew. */
async function every(
  seconds: number,
  signal: AbortSignal,
  log: Logger,
  work: (signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  for (;;) {
    await sleep(seconds * 1000, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    await work(signal).catch((error: unknown) => {
      if (!signal.aborted) log.warn({ err: error }, 'a periodic duty of the worker failed');
    });
  }
}

async function retry(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    try {
      return await work();
    } catch {
      await sleep(250, undefined, { signal }).catch(() => {});
    }
  }
}

/** graphile-worker reports each job at `info`, and failures that the engine has logged already at `error`. */
function quiet(log: Logger): GraphileLogger {
  return new GraphileLogger(() => (_level, message) => log.trace({ queue: message }, 'job queue'));
}
