/**
 * Priorities of reconcile jobs: start-time fair queueing by client.
 *
 * graphile-worker runs the job with the lowest priority first, then the oldest. A job gets the priority of the next job that
 * is ready (virtual time), plus a step for every few jobs that its client already has there. So the backlog of
 * one client delays a job of another by a few jobs, and a client that always has work cannot starve a backlog: virtual
 * time passes with every job. A retry keeps its priority.
 *
 * Bands, lowest first: jobs that a client waits for, jobs of policies, sweeps.
 */
import { prepared } from '../platform/db.ts';
import type { Db } from '../platform/db.ts';
import type { Share } from './backlog.ts';

const jobsPerStep = 4;
const lastOfClients = 19_999;
const firstOfPolicies = 20_000;
const lastOfPolicies = 29_999;
export const sweepPriority = 30_000;
/** Virtual time starts over before it comes near the end of its band. */
const rebaseAt = 10_000;

/** What is added to virtual time for a client with so many jobs. */
export function stepOf(jobs: number, { weight = 1 }: Share): number {
  return Math.floor(jobs / (jobsPerStep * weight));
}

/** The priority of a policy's job: nobody waits for it. */
export function policyPriority(step: number): number {
  return Math.min(firstOfPolicies + step, lastOfPolicies);
}

/** A job of a client as the worker can tell: see client-slots.ts. */
export const flagOf = (clientId: number | string) => `client:${clientId}`;

/**
 * SQL: the priority of a job that comes `step` after virtual time. Without a condition on the region, because PostgreSQL then
 * reads the first entry of the index in the order of the queue; with one it reads and sorts the whole backlog. So where a
 * region has no worker, virtual time of the others stands still, too, and their order is by the backlogs alone.
 */
export const priorityAt = (step: string) =>
  `least(${lastOfClients}, ${step} + coalesce((
     select j.priority from graphile_worker._private_jobs j
     where j.is_available and j.run_at <= now() and j.priority <= ${lastOfClients}
     order by j.priority, j.run_at limit 1), 0))`;

const rebase = prepared(
  'jobs_rebase',
  `with base as (
     select t.id as task_id, min(j.priority) as priority
     from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id
     where t.identifier = any($1::text[]) and j.is_available and j.run_at <= now() and j.priority <= ${lastOfClients}
     group by t.id having min(j.priority) >= $2)
   update graphile_worker._private_jobs j set priority = greatest(0, j.priority - base.priority)
   from base where j.task_id = base.task_id and j.is_available and j.priority <= ${lastOfClients}`,
);

/** Sets virtual time back to 0 where a backlog has lasted so long that it grew large. Keeps the order of the jobs. */
export async function rebasePriorities(db: Db, regionIds: number[], at = rebaseAt): Promise<void> {
  await rebase(
    db,
    regionIds.map((id) => `reconcile:${id}`),
    at,
  );
}
