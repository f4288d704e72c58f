/**
 * The graphile-worker pools of a worker, and what happens to the jobs of a pool that dies.
 *
 * Invariant: a pool holds an advisory lock named after it for as long as it lives. A job that is locked by a pool whose
 * advisory lock has been free for `graceSeconds` belongs to a dead worker and is released (graphile-worker itself would
 * wait four hours). The grace lets live pools take their locks again after a restart of PostgreSQL.
 */
import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Logger as GraphileLogger, run } from 'graphile-worker';
import type { Runner, TaskList, WorkerEvents, WorkerUtils } from 'graphile-worker';
import type pg from 'pg';
import type { Logger } from 'pino';
import { detectLostHost, openUnboundedPool } from '../platform/db.ts';
import type { Db } from '../platform/db.ts';
import { watchClientSlots } from './client-slots.ts';
import { retryingPool } from './retrying-pool.ts';

export interface PoolOptions {
  db: Db;
  log: Logger;
  concurrency: number;
  /** Jobs of one client that run at once; 0: three quarters of `concurrency`. */
  slotsPerClient?: number;
  /** Time between two polls for jobs whose time has come; new jobs are announced. Default: a second. */
  pollMs?: number;
}

const graceSeconds = 4;
const retryMs = 250;
/** First key of the advisory locks of live pools. */
const poolLocks = 0x636c6f75;

/**
 * Runs the handlers. A pool that saw the database break may hold jobs that nobody runs: the response that assigned them, or
 * the statement that ends them, was lost. Such a pool is retired: it fetches no more jobs, finishes the running ones and
 * releases its lock, after which `releaseDeadJobs` frees the rest. Meanwhile a new pool, with a new id, does the work.
 * There may be many retired pools, so their locks are held outside the pool of connections that they need to finish.
 */
export async function startPools(
  options: PoolOptions,
  handlers: TaskList,
  shutdown: AbortSignal,
): Promise<{ stop(): Promise<void> }> {
  const { db, log, concurrency } = options;
  const slots = options.slotsPerClient || Math.ceil(concurrency * 0.75);
  const pools = new Map<Runner, Promise<void>>();
  const locks = openUnboundedPool(db, log);
  const start = async () => {
    // A pool that starts without a database would be retired at once.
    await db.$client.query('select');
    const over = new AbortController();
    let runner: Runner | undefined;
    let retired = false;
    const retire = () => {
      if (retired || shutdown.aborted) return;
      retired = true;
      log.warn('job queue lost its database connection; starting a new pool');
      void runner?.stop().catch(() => {});
      starting = retry(shutdown, start);
    };
    const events: WorkerEvents = new EventEmitter();
    events.on('pool:create', ({ workerPool }) => void holdLock(locks, workerPool.id, over.signal, retire));
    const started = (runner = await run({
      ...(slots < concurrency && { forbiddenFlags: watchClientSlots(events, slots) }),
      pgPool: retryingPool(db.$client, locks, shutdown, retire),
      concurrency,
      taskList: handlers,
      noHandleSignals: true,
      pollInterval: options.pollMs ?? 1000,
      events,
      logger: traceOnly(log),
    }));
    const end = () => {
      over.abort();
      pools.delete(started);
      retire();
    };
    // The promise also resolves when the pool gave up.
    pools.set(started, started.promise.then(end, end));
    // The connection broke during the start.
    if (retired) void started.stop().catch(() => {});
  };
  let starting = start();
  await starting;
  return {
    async stop() {
      await starting;
      for (const runner of pools.keys()) void runner.stop().catch(() => {});
      await Promise.all(pools.values());
      await locks.end();
    },
  };
}

/** Holds the lock of a pool until `over`, on a new connection whenever one breaks; calls `onLost` each time. */
async function holdLock(locks: pg.Pool, poolId: string, over: AbortSignal, onLost: () => void): Promise<void> {
  const ended = new Promise<void>((resolve) => over.addEventListener('abort', () => resolve()));
  while (!over.aborted) {
    await retry(over, async () => {
      const client = await locks.connect();
      const broken = new Promise<void>((resolve) => client.once('end', resolve));
      try {
        await client.query(detectLostHost);
        await client.query('select pg_advisory_lock($1, hashtext($2))', [poolLocks, poolId]);
        await Promise.race([broken, ended]);
      } finally {
        client.release(true);
      }
    });
    if (!over.aborted) onLost();
  }
}

/** Returns a function to call periodically: it releases the jobs of pools that had no lock for `graceSeconds`. */
export function createDeadJobRelease(db: Db, utils: WorkerUtils, log: Logger): () => Promise<void> {
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
    log.warn({ pools: dead }, 'releasing the jobs of dead workers');
    await utils.forceUnlockWorkers(dead);
  };
}

async function retry(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    try {
      return await work();
    } catch {
      await sleep(retryMs, undefined, { signal }).catch(() => {});
    }
  }
}

/** graphile-worker logs each job at `info`, and at `error` failures that are logged here already. */
export function traceOnly(log: Logger): GraphileLogger {
  return new GraphileLogger(() => (_level, message) => log.trace({ queue: message }, 'job queue'));
}
