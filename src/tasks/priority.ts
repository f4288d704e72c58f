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
 * Deliveries of notifications are ordered in the same way, in their own queue.
 */
import { prepared } from '../platform/db.ts';
import type { Db } from '../platform/db.ts';
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

/** SQL: the jobs of the client that are ready in the queue. */
export const readyJobsOf = (clientId: string, queue: string) =>
  `(select count(*) from jobs ready where ready.queue = ${queue} and ready.locked_by is null and ready.run_at <= now()
     and ready.client_id = ${clientId})`;

const rebase = prepared(
  'jobs_rebase',
  `with base as (
     select queue, min(priority) as priority from jobs
     where queue = any ($1::text[]) and locked_by is null and run_at <= now() and priority <= ${lastOfClients}
     group by queue having min(priority) >= $2)
   update jobs j set priority = greatest(0, j.priority - base.priority)
   from base where j.queue = base.queue and j.locked_by is null and j.priority <= ${lastOfClients}`,
);

/** Sets virtual time back to 0 where a long backlog has made it large. Keeps the order of the jobs. */
export async function rebasePriorities(db: Db, queues: string[]): Promise<void> {
  await rebase(db, queues, rebaseAt);
}
