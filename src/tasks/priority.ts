/**
 * Priorities of reconcile jobs: start-time fair queueing by client.
 *
 * The job with the lowest priority runs first, then the oldest. A job gets the priority of the next ready
 * job (virtual time), plus one step for every few jobs that its client already has in the queue. So the backlog of one
 * client delays a job of another client by a few jobs, and a client that always has work cannot starve a backlog, because
 * virtual time passes with every job. A retry keeps its priority.
 *
 * Bands, lowest first: jobs that a client waits for, jobs of policies, sweeps.
 *
 * Deliveries of notifications are ordered in a queue of their own: one step for every job, and a retry gets its place when
 * it is requested. If virtual time falls to 0 before a retry is due, jobs that were enqueued meanwhile run first.
 */
import { type Db, prepared, type Tx } from '../platform/db.ts';
import type { WeightedClient } from './backlog.ts';

const jobsPerStep = 4;
const lastOfClients = 19_999;
const firstOfPolicies = 20_000;
const lastOfPolicies = 29_999;
export const sweepPriority = 30_000;
/** Virtual time starts over before it comes near the end of its band. */
const rebaseAt = 10_000;

/** The step after virtual time for a client that has this many jobs. */
export function stepOf(jobs: number, { weight = 1 }: WeightedClient): number {
  return Math.floor(jobs / (jobsPerStep * weight));
}

/** The priority of a job of a policy, which no client waits for. */
export function policyPriority(step: number): number {
  return Math.min(firstOfPolicies + step, lastOfPolicies);
}

/** SQL: the priority of a job that comes `step` after virtual time of the queue (migrations/0001_jobs.sql). */
export const priorityAt = (queue: string, step: string) =>
  `least(${lastOfClients}, ${step} + cloudyard_virtual_time(${queue}, ${lastOfClients}))`;

const rebase = prepared(
  'jobs_rebase',
  `with base as (
     select queue, min(priority) as priority from jobs
     where queue = any ($1::text[]) and locked_by is null and run_at <= now() and priority <= ${lastOfClients}
     group by queue having min(priority) >= $2)
   update jobs j set priority = greatest(0, j.priority - base.priority)
   from base, jobs seen where seen.queue = base.queue and seen.locked_by is null and seen.priority <= ${lastOfClients}
     and j.id = seen.id and j.kind = seen.kind and j.priority >= least(seen.priority, base.priority)`,
);

/**
 * Sets virtual time back to 0 where a long backlog has made it large. Keeps the order of the jobs. Processes may call it
 * concurrently: `seen` is the row before a concurrent call, which made its priority less than `base`.
 */
export async function rebasePriorities(on: Db | Tx, queues: string[]): Promise<void> {
  await rebase(on, queues, rebaseAt);
}
