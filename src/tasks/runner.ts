/**
 * Runs the jobs of some queues. A turn is one statement: it ends the jobs that have finished since the previous turn, and
 * assigns as many new ones as there are free slots. Turns follow each other only while there is something to end or to
 * fetch, so an idle worker sends nothing but a poll, and a busy one ends and fetches jobs in batches.
 *
 * Failure modes: when the connection breaks, running jobs continue, and their results are sent on the next connection.
 * There the worker also releases jobs that were assigned to it by a statement whose response was lost, and aborts those
 * that another worker has claimed because this one was away for too long.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../platform/clock.ts';
import { isDatabaseAway } from '../platform/db-errors.ts';
import { type Db, openUnboundedPool } from '../platform/db.ts';
import type { Logger } from '../platform/log.ts';
import { createClientSlots } from './client-slots.ts';
import { type Fetch, jobsOf, releaseJobs, takeTurn } from './jobs.ts';
import { createRunningJobs, type JobEnd, type RunJob, type RunningJob, type RunningJobs } from './running-jobs.ts';
import { openSession, type Session } from './session.ts';
import type { Wakeups } from './wakeups.ts';

export interface RunnerOptions {
  db: Db;
  log: Logger;
  clock: Clock;
  workerId: string;
  queues: string[];
  wakeups: Wakeups;
  concurrency: number;
  /** Jobs of one client that run at once; 0: three quarters of `concurrency`. */
  slotsPerClient?: number;
  /** Time between two polls for jobs whose time has come; new jobs are announced. Default: a second. */
  pollMs?: number;
  /** Called for each job that ended, for metrics. */
  onJobEnd?(end: JobEnd): void;
}

const retryMs = 250;
/** After a fetch that had to skip jobs of busy clients, the next one waits this many times as long as it took. */
const idleFactor = 10;
const longestBlockedMs = 50;

export type Runner = ReturnType<typeof startRunner>;

/**
 * Starts to fetch and run jobs. When `shutdown` aborts, it fetches no more and aborts the running ones; then call
 * `stop`, which waits for them and records how they ended.
 */
export function startRunner(options: RunnerOptions, run: RunJob, shutdown: AbortSignal) {
  const { db, log, workerId, queues, concurrency } = options;
  const pool = openUnboundedPool(db, log);
  const slots = createClientSlots(options.slotsPerClient || Math.ceil(concurrency * 0.75));
  /** Queues that may have jobs to fetch. */
  const toFetch = new Set(queues);
  const fetchAll = () => queues.forEach((queue) => toFetch.add(queue));
  let lease = 0;
  /** The earliest time of the next fetch that skips clients. */
  let notBefore = 0;
  let blockedMs = 0;
  let change = Promise.withResolvers<void>();
  const announceChange = () => {
    change.resolve();
    change = Promise.withResolvers<void>();
  };
  const wake = (queue: string) => {
    toFetch.add(queue);
    announceChange();
  };
  const onEnd = (end: JobEnd, freesClient: boolean) => {
    if (freesClient) fetchAll();
    options.onJobEnd?.(end);
    announceChange();
  };
  const runningJobs = createRunningJobs({ run, slots, shutdown, log, onEnd });

  /** The next fetch; null if there is none to make. Queues take turns. */
  const nextFetch = (): Fetch | null => {
    const skippedClients = slots.full();
    const limit = Math.min(concurrency - runningJobs.running.size, slots.room());
    const isEarly = skippedClients.length > 0 && performance.now() < notBefore;
    const [queue] = toFetch;
    if (queue === undefined || limit <= 0 || isEarly || shutdown.aborted) return null;
    return { queue, limit, skippedClients, lease: ++lease };
  };

  const turn = async (session: Session, fetch: Fetch | null) => {
    // A wake-up during the statement adds it again.
    if (fetch) toFetch.delete(fetch.queue);
    const ended = runningJobs.takeUnsentEnds();
    const started = performance.now();
    const result = await takeTurn(session.db, { workerId, ended, fetch, now: options.clock.now() }).catch(
      (error: unknown) => {
        runningJobs.returnEnds(ended);
        throw error;
      },
    );
    runningJobs.returnEnds(result.blocked);
    for (const job of result.jobs) runningJobs.start(job);
    if (fetch && result.jobs.length === fetch.limit) toFetch.add(fetch.queue);
    else if (fetch?.skippedClients.length) notBefore = performance.now() + idleFactor * (performance.now() - started);
    if (result.again) fetchAll();
    // Another transaction holds these rows; it should be about to commit.
    blockedMs = result.blocked.length > 0 ? Math.min(2 * blockedMs + 1, longestBlockedMs) : 0;
    if (blockedMs > 0) await sleep(blockedMs);
  };

  const mayStop = () => shutdown.aborted && runningJobs.running.size === 0 && runningJobs.unsentEnds().length === 0;
  const work = async (session: Session) => {
    let isBroken = false;
    void session.broken.then(() => {
      isBroken = true;
      announceChange();
    });
    for (const entry of await findLost(session.db, workerId, runningJobs)) {
      runningJobs.abortLost(entry);
    }
    fetchAll();
    while (!mayStop() && !isBroken) {
      const changed = change.promise;
      const fetch = nextFetch();
      if (fetch || runningJobs.unsentEnds().length > 0) await turn(session, fetch);
      else await untilChange(changed);
    }
  };

  const untilChange = async (changed: Promise<void>) => {
    const wait = slots.full().length > 0 && toFetch.size > 0 ? notBefore - performance.now() : 0;
    if (wait <= 0) return changed;
    await Promise.race([changed, sleep(wait)]);
  };

  const loop = async () => {
    let isLost = false;
    while (!mayStop()) {
      try {
        const session = await openSession(pool, workerId, queues, wake);
        await work(session).finally(session.close);
        isLost = !mayStop();
      } catch (error) {
        isLost = true;
        if (!isDatabaseAway(error)) log.error({ err: error }, 'job queue failed');
      }
      // Without a database, a worker that stops leaves its jobs to the others.
      if (isLost && shutdown.aborted && runningJobs.running.size === 0) return;
      if (isLost) await sleep(retryMs);
    }
  };

  const endServing = queues.map((queue) => options.wakeups.serve(queue, () => wake(queue)));
  const poll = setInterval(() => queues.forEach(wake), options.pollMs ?? 1000);
  const looping = loop();
  return {
    /** Fetches no more jobs and waits for the running ones. */
    async stop(): Promise<void> {
      clearInterval(poll);
      for (const end of endServing) end();
      announceChange();
      await looping;
      await pool.end();
    },
  };
}

const isSame = (a: { kind: string; id: string; lease: number }) => (b: typeof a) =>
  a.kind === b.kind && a.id === b.id && a.lease === b.lease;

/**
 * Compares the jobs that are assigned to a worker with those that it runs or has ended, after its session was lost: releases
 * the others, and returns the entries of jobs that another worker has claimed.
 */
async function findLost(db: Session['db'], workerId: string, runningJobs: RunningJobs): Promise<RunningJob[]> {
  const held = await jobsOf(db, workerId);
  const own = [...[...runningJobs.running].map(({ job }) => job), ...runningJobs.unsentEnds()];
  const unknown = held.filter((job) => !own.some(isSame(job)));
  await releaseJobs(db, workerId, unknown);
  return [...runningJobs.running].filter(({ job }) => !held.some(isSame(job)));
}
