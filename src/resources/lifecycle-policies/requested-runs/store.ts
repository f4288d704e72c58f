/** SQL of the runs that clients request. */
import { prepared, preparedColumn, type Tx } from '../../../platform/db.ts';

/** The newest run of a schedule until an instant, and the run that a client requested and that has not ended. */
export interface LastRun {
  scheduleId: string;
  scheduledAt: Date | null;
  openTaskId: string | null;
}

/** Of each schedule of the policy that ever ran, removed ones included. */
export const findLastRuns = prepared<LastRun, [policyId: number, until: Date], Tx>(
  'lifecycle_policy_last_runs',
  `select last.*, open.task_id as "openTaskId"
   from (select schedule_id as "scheduleId", max(scheduled_at) filter (where scheduled_at <= $2) as "scheduledAt"
         from lifecycle_policy_runs where policy_id = $1 group by 1) as last
     left join lateral (select task_id from lifecycle_policy_runs r
       where r.schedule_id = last."scheduleId" and r.task_id is not null and r.done_at is null limit 1) as open on true`,
);

/** The requested runs of a policy that have not ended. */
export const findOpen = preparedColumn<string, [policyId: number], Tx>(
  'lifecycle_policy_requested_runs_open',
  'select id from lifecycle_policy_runs where policy_id = $1 and task_id is not null and done_at is null',
);
