/** The jobs that a runner runs, and the ends of jobs that it has not sent to the queue yet. */
import { exceededTimeLimit, isDatabaseAway } from '../platform/db-errors.ts';
import type { Logger } from '../platform/log.ts';
import type { ClientSlots } from './client-slots.ts';
import type { AssignedJob, EndedJob } from './jobs.ts';

/** The result of a job: done, or another run after some seconds, with the attempts that then count as used. */
export type JobEnd = { done: true } | { againAfter: number; attempts: number };

/** Runs one job. @throws to have it repeated with backoff */
export type RunJob = (job: AssignedJob, signal: AbortSignal) => Promise<JobEnd>;

const lastBackoffStep = 5;

/** The delays are 2.7, 7.4, 20, 55 and then always 148 s. */
export const backoffSeconds = (attempt: number) => Math.exp(Math.min(attempt, lastBackoffStep));

export interface RunningJob {
  job: AssignedJob;
  abort: AbortController;
  /** Whether another worker has claimed the job: its end is not sent. */
  isLost: boolean;
  ended: Promise<void>;
}

interface RunningJobsOptions {
  run: RunJob;
  slots: ClientSlots;
  /** When it aborts, all jobs are aborted. */
  shutdown: AbortSignal;
  log: Logger;
  /** `freesClient`: the client had no free slot, so fetches skipped its jobs. */
  onEnd(end: JobEnd, freesClient: boolean): void;
}

export type RunningJobs = ReturnType<typeof createRunningJobs>;

export function createRunningJobs({ run, slots, shutdown, log, onEnd }: RunningJobsOptions) {
  const running = new Set<RunningJob>();
  let unsentEnds: EndedJob[] = [];
  shutdown.addEventListener('abort', () => running.forEach(({ abort }) => abort.abort(shutdown.reason)), {
    once: true,
  });
  return {
    running: running as ReadonlySet<RunningJob>,

    start(job: AssignedJob): void {
      const abort = new AbortController();
      if (shutdown.aborted) abort.abort(shutdown.reason);
      // Left over from a lost session: the same job may still run here.
      const previous = [...running].filter((other) => other.job.kind === job.kind && other.job.id === job.id);
      slots.add(job.clientId);
      const entry: RunningJob = { job, abort, isLost: false, ended: Promise.resolve() };
      running.add(entry);
      entry.ended = Promise.all(previous.map(({ ended }) => ended))
        .then(() => run(job, abort.signal))
        .catch((error: unknown): JobEnd => endOfFailure(job, error, shutdown, log))
        .then((end) => {
          running.delete(entry);
          const freesClient = slots.full().includes(job.clientId);
          slots.remove(job.clientId);
          if (!entry.isLost) unsentEnds.push(endedJob(job, end));
          onEnd(end, freesClient);
        });
    },

    /** Aborts a job that another worker has claimed. */
    abortLost(entry: RunningJob): void {
      const { kind, id } = entry.job;
      entry.isLost = true;
      log.warn({ kind, id }, 'another worker claimed a job; aborting it');
      entry.abort.abort(new Error('another worker claimed the job'));
    },

    unsentEnds: (): readonly EndedJob[] => unsentEnds,

    /** Returns the unsent ends and marks them as sent. */
    takeUnsentEnds(): EndedJob[] {
      const taken = unsentEnds;
      unsentEnds = [];
      return taken;
    },

    /** Ends that were taken and could not be sent, or whose rows another transaction held. */
    returnEnds(ends: EndedJob[]): void {
      unsentEnds.push(...ends);
    },
  };
}

function endOfFailure({ kind, id, attempt }: AssignedJob, error: unknown, shutdown: AbortSignal, log: Logger): JobEnd {
  if (shutdown.aborted) return { againAfter: 0, attempts: attempt - 1 };
  // A statement may always exceed a time limit of the operator, so these attempts count and back off.
  if (isDatabaseAway(error) && exceededTimeLimit(error) === null) return { againAfter: 1, attempts: attempt - 1 };
  log.warn({ err: error, kind, id, attempt }, 'job failed');
  return { againAfter: backoffSeconds(attempt), attempts: attempt };
}

function endedJob({ kind, id, lease }: AssignedJob, end: JobEnd): EndedJob {
  const [delaySeconds, attempts] = 'done' in end ? [null, 0] : [end.againAfter, end.attempts];
  return { kind, id, lease, delaySeconds, attempts };
}
