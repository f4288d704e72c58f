/**
 * Priorities of reconcile jobs: start-time fair queueing by client.
 *
 * graphile-worker runs the job with the lowest priority first, then the oldest. A job gets the priority of the next ready
 * job (virtual time), plus one step for every few jobs that its client already has in the queue. So the backlog of one
 * client delays a job of another client by a few jobs, and a client that always has work cannot starve a backlog, because
 * virtual time passes with every job. A retry keeps its priority.
 *
 * Bands, lowest first: jobs that a client waits for, jobs of policies, sweeps.
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

/** The flag of a job that names its client (client-slots.ts), as text and as an SQL expression. */
export const clientFlag = {
  of: (clientId: number) => `client:${clientId}`,
  sql: (clientId: string) => `'client:' || ${clientId}`,
};

/**
 * SQL: the priority of a job that comes `step` after virtual time. The query has no condition on the region, because
 * PostgreSQL then reads the first entry of the queue's index; with a condition it reads and sorts the whole backlog. So if
 * a region has no worker, virtual time of the other regions stops as well, and their order follows the backlogs alone.
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

/** Sets virtual time back to 0 where a long backlog has made it large. Keeps the order of the jobs. */
export async function rebasePriorities(db: Db, regionIds: number[], at = rebaseAt): Promise<void> {
  const names = regionIds.map((id) => `reconcile:${id}`);
  await rebase(db, names, at);
}
