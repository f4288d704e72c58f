/**
 * Runs the jobs of some queues. A turn is one statement: it ends the jobs that have finished since the previous turn, and
 * assigns as many new ones as there are free slots. Turns follow each other only while there is something to end or to
 * fetch, so an idle worker sends nothing but a poll, and a busy one ends and fetches jobs in batches.
 *
 * Failure modes: when the connection breaks, running jobs continue, and their results are sent on the next connection.
 * There the worker also releases jobs that were assigned to it by a statement whose response was lost, and aborts those
 * that another worker has taken over because this one was away for too long.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Clock } from '../platform/clock.ts';
import { openUnboundedPool } from '../platform/db.ts';
import { exceededTimeLimit, hostShortageOf, isUnavailable } from '../platform/db-errors.ts';
import type { Db } from '../platform/db.ts';
import { createClientSlots } from './client-slots.ts';
import { jobsOf, releaseJobs, takeTurn } from './jobs.ts';
import type { AssignedJob, EndedJob, Fetch } from './jobs.ts';
import { openSession } from './session.ts';
import type { Session } from './session.ts';
import type { Wakeups } from './wakeups.ts';

/** The result of a job: done, or another run after some seconds. */
export type JobEnd = { done: true } | { againAfter: number /** That count as used. */; attempts: number };

/** Runs one job. @throws to have it repeated with backoff */
export type RunJob = (job: AssignedJob, signal: AbortSignal) => Promise<JobEnd>;

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
const lastBackoffStep = 5;
const longestBlockedMs = 50;

/** The delays are 2.7, 7.4, 20, 55 and then always 148 s. */
export const backoffSeconds = (attempt: number) => Math.exp(Math.min(attempt, lastBackoffStep));

interface Running {
  job: AssignedJob;
  abort: AbortController;
  /** Whether another worker has taken over the job. */
  isLost: boolean;
  ended: Promise<void>;
}

export interface Runner {
  /** Fetches no more jobs and waits for the running ones. */
  stop(): Promise<void>;
}

/**
 * Starts to fetch and run jobs. When `shutdown` aborts, it fetches no more and aborts the running ones; then call
 * `stop`, which waits for them and records how they ended.
 */
export function startRunner(options: RunnerOptions, run: RunJob, shutdown: AbortSignal): Runner {
  const { db, log, workerId, queues, concurrency } = options;
  const pool = openUnboundedPool(db, log);
  const slots = createClientSlots(options.slotsPerClient || Math.ceil(concurrency * 0.75));
  const running = new Set<Running>();
  let ended: EndedJob[] = [];
  const hungry = new Set(queues);
  let lease = 0;
  let notBefore = 0;
  let blockedMs = 0;
  let change = Promise.withResolvers<void>();
  const signal = () => {
    change.resolve();
    change = Promise.withResolvers<void>();
  };
  const wake = (queue: string) => {
    hungry.add(queue);
    signal();
  };

  const start = (job: AssignedJob) => {
    const abort = new AbortController();
    if (shutdown.aborted) abort.abort(shutdown.reason);
    // Left over from a lost session: the same job may still run here.
    const previous = [...running].filter((other) => other.job.kind === job.kind && other.job.id === job.id);
    slots.add(job.clientId);
    const entry: Running = { job, abort, isLost: false, ended: Promise.resolve() };
    running.add(entry);
    entry.ended = Promise.all(previous.map(({ ended }) => ended))
      .then(() => run(job, abort.signal))
      .catch((error: unknown): JobEnd => endOfFailure(job, error, shutdown, log))
      .then((end) => {
        running.delete(entry);
        const wasFull = slots.full().includes(job.clientId);
        slots.remove(job.clientId);
        if (wasFull) for (const queue of queues) hungry.add(queue);
        if (!entry.isLost) ended.push(endedJob(job, end));
        options.onJobEnd?.(end);
        signal();
      });
  };

  /** The next fetch; null if there is none to make. Queues take turns. */
  const nextFetch = (): Fetch | null => {
    const skippedClients = slots.full();
    const limit = Math.min(concurrency - running.size, slots.room());
    const isEarly = skippedClients.length > 0 && performance.now() < notBefore;
    const [queue] = hungry;
    if (queue === undefined || limit <= 0 || isEarly || shutdown.aborted) return null;
    return { queue, limit, skippedClients, lease: ++lease };
  };

  const turn = async (session: Session, fetch: Fetch | null) => {
    // A wake-up during the statement adds it again.
    if (fetch) hungry.delete(fetch.queue);
    const sent = ended;
    ended = [];
    const started = performance.now();
    const result = await takeTurn(session.db, { workerId, ended: sent, fetch, now: options.clock.now() }).catch(
      (error: unknown) => {
        ended.push(...sent);
        throw error;
      },
    );
    ended.push(...result.blocked);
    for (const job of result.jobs) start(job);
    if (fetch && result.jobs.length === fetch.limit) hungry.add(fetch.queue);
    else if (fetch?.skippedClients.length) notBefore = performance.now() + idleFactor * (performance.now() - started);
    if (result.again) for (const queue of queues) hungry.add(queue);
    // Another transaction holds these rows; it should be about to commit.
    blockedMs = result.blocked.length > 0 ? Math.min(2 * blockedMs + 1, longestBlockedMs) : 0;
    if (blockedMs > 0) await sleep(blockedMs);
  };

  const mayStop = () => shutdown.aborted && running.size === 0 && ended.length === 0;
  const work = async (session: Session) => {
    let isBroken = false;
    void session.broken.then(() => {
      isBroken = true;
      signal();
    });
    for (const entry of await findLost(session.db, workerId, running, ended)) {
      const { kind, id } = entry.job;
      entry.isLost = true;
      log.warn({ kind, id }, 'another worker claimed a job; aborting it');
      entry.abort.abort(new Error('another worker claimed the job'));
    }
    for (const queue of queues) hungry.add(queue);
    while (!mayStop() && !isBroken) {
      const changed = change.promise;
      const fetch = nextFetch();
      if (fetch || ended.length > 0) await turn(session, fetch);
      else await untilChange(changed);
    }
  };

  const untilChange = async (changed: Promise<void>) => {
    const wait = slots.full().length > 0 && hungry.size > 0 ? notBefore - performance.now() : 0;
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
        if (!isAway(error)) log.error({ err: error }, 'job queue failed');
      }
      // Without a database, a worker that stops leaves its jobs to the others.
      if (isLost && shutdown.aborted && running.size === 0) return;
      if (isLost) await sleep(retryMs);
    }
  };

  const unserve = queues.map((queue) => options.wakeups.serve(queue, () => wake(queue)));
  const poll = setInterval(() => queues.forEach(wake), options.pollMs ?? 1000);
  const abortAll = () => running.forEach(({ abort }) => abort.abort(shutdown.reason));
  shutdown.addEventListener('abort', abortAll, { once: true });
  const looping = loop();
  return {
    async stop() {
      clearInterval(poll);
      for (const end of unserve) end();
      signal();
      await looping;
      await pool.end();
    },
  };
}

/** Not when this host lacks resources: the error may also be one of the job itself, and its operator must see it. */
const isAway = (error: unknown) => isUnavailable(error) && hostShortageOf(error) === null;

function endOfFailure({ kind, id, attempt }: AssignedJob, error: unknown, shutdown: AbortSignal, log: Logger): JobEnd {
  if (shutdown.aborted) return { againAfter: 0, attempts: attempt - 1 };
  // A statement may always exceed a time limit of the operator, so these attempts count and back off.
  if (isAway(error) && exceededTimeLimit(error) === null) return { againAfter: 1, attempts: attempt - 1 };
  log.warn({ err: error, kind, id, attempt }, 'job failed');
  return { againAfter: backoffSeconds(attempt), attempts: attempt };
}

function endedJob({ kind, id, lease }: AssignedJob, end: JobEnd): EndedJob {
  const [delaySeconds, attempts] = 'done' in end ? [null, 0] : [end.againAfter, end.attempts];
  return { kind, id, lease, delaySeconds, attempts };
}

const isSame = (a: { kind: string; id: string; lease: number }) => (b: typeof a) =>
  a.kind === b.kind && a.id === b.id && a.lease === b.lease;

/**
 * Compares the jobs that are assigned to a worker with those that it runs or has ended, after its session was lost: releases
 * the others, and returns the entries of jobs that another worker has taken over.
 */
async function findLost(
  db: Session['db'],
  workerId: string,
  running: Set<Running>,
  ended: EndedJob[],
): Promise<Running[]> {
  const held = await jobsOf(db, workerId);
  const own = [...[...running].map(({ job }) => job), ...ended];
  const unknown = held.filter((job) => !own.some(isSame(job)));
  await releaseJobs(db, workerId, unknown);
  return [...running].filter(({ job }) => !held.some(isSame(job)));
}
