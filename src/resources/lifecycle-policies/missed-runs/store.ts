/** SQL of missed runs: schedules that are late, and instants that were skipped. */
import { type Db, prepared, preparedValue, type Tx } from '../../../platform/db.ts';
import { type Found, writeRows } from '../../store-kit.ts';
import type { lifecyclePolicyMissedRuns } from '../runs/table.ts';
import type { PolicyRow, ScheduleRow } from '../store.ts';

type Row = typeof lifecyclePolicyMissedRuns.$inferSelect;

/** A run that started late, or that replaced later instants. */
export type LateRun = Pick<Row, 'policyId' | 'scheduleId' | 'scheduledAt' | 'skipped'>;

/** Records runs in the transaction that starts them. */
export const recordStarted = writeRows<LateRun, [now: Date]>(
  'lifecycle_policy_missed_runs_started',
  ['policyId', 'scheduleId', 'scheduledAt', 'skipped'],
  `insert into lifecycle_policy_missed_runs as m (policy_id, schedule_id, scheduled_at, skipped, noticed_at, started_at)
   select r.policy_id, r.schedule_id, r.scheduled_at, r.skipped, $5, $5
   from unnest($1::int[], $2::uuid[], $3::timestamptz[], $4::int[]) as r (policy_id, schedule_id, scheduled_at, skipped)
   on conflict (schedule_id, scheduled_at) do update set started_at = excluded.started_at, skipped = excluded.skipped,
     -- Reported as late: skipped instants are news.
     reported_at = case when excluded.skipped = 0 then m.reported_at end`,
);

/** Records the schedules that were due before `limit` and have not run. */
export const recordLate = prepared<object, [limit: Date, now: Date], Db>(
  'lifecycle_policy_missed_runs_late',
  `insert into lifecycle_policy_missed_runs (policy_id, schedule_id, scheduled_at, noticed_at)
   select policy_id, id, next_run_at, $2 from lifecycle_policy_schedules where next_run_at < $1
   on conflict (schedule_id, scheduled_at) do nothing`,
);

/** The number of schedules that were due before this time and have not run. */
export const countLate = preparedValue<number, [limit: Date], Db>(
  'lifecycle_policy_schedules_late',
  'select count(*) as count from lifecycle_policy_schedules where next_run_at < $1',
);

/** A policy with missed runs that no message has reported. */
export type PolicyOfReport = Pick<PolicyRow, 'id' | 'name' | 'clientId' | 'projectId' | 'regionId'>;

/** Locks policies with unreported missed runs whose last message was before `windowStart`. */
export const claimReports = prepared<PolicyOfReport, [windowStart: Date, limit: number], Tx>(
  'lifecycle_policy_missed_runs_claim',
  `select p.id, p.name, p.client_id as "clientId", p.project_id as "projectId", p.region_id as "regionId"
   from lifecycle_policies p
   where p.id in (select policy_id from lifecycle_policy_missed_runs where reported_at is null)
     and (p.missed_reported_at is null or p.missed_reported_at <= $1)
   order by p.id limit $2 for no key update of p skip locked`,
);

export type MissedRunRow = Pick<Row, 'scheduleId' | 'scheduledAt' | 'startedAt' | 'skipped'>;

/** Marks the unreported missed runs of a policy as reported, and returns them. */
export const takeUnreported = prepared<MissedRunRow, [policyId: number, now: Date], Tx>(
  'lifecycle_policy_missed_runs_report',
  `with policy as (update lifecycle_policies set missed_reported_at = $2 where id = $1),
   reported as (
     update lifecycle_policy_missed_runs set reported_at = $2 where policy_id = $1 and reported_at is null returning *)
   select schedule_id as "scheduleId", scheduled_at as "scheduledAt", started_at as "startedAt", skipped
   from reported order by scheduled_at, schedule_id`,
);

/** A missed run, and its schedule; null if the schedule was removed. */
export interface MissedRunView extends MissedRunRow {
  given: ScheduleRow['given'] | null;
  createdAt: Date | null;
}

const readPage = prepared<MissedRunView>(
  'lifecycle_policy_missed_runs_page',
  `select m.schedule_id as "scheduleId", m.scheduled_at as "scheduledAt", m.started_at as "startedAt", m.skipped,
          s.given, s.created_at as "createdAt"
   from lifecycle_policy_missed_runs m left join lifecycle_policy_schedules s on s.id = m.schedule_id
   where m.policy_id = $1 order by m.scheduled_at desc, m.schedule_id limit $2 offset $3`,
);

const countOfPolicy = preparedValue<number>(
  'lifecycle_policy_missed_runs_count',
  'select count(*) as count from lifecycle_policy_missed_runs where policy_id = $1',
);

/** The newest comes first. */
export async function list(
  db: Db,
  policyId: number,
  { limit, offset }: { limit: number; offset: number },
): Promise<Found<MissedRunView>> {
  const [count, rows] = await Promise.all([countOfPolicy(db, policyId), readPage(db, policyId, limit, offset)]);
  return { count, rows };
}

export const removeOld = prepared<object, [before: Date], Db>(
  'lifecycle_policy_missed_runs_delete',
  'delete from lifecycle_policy_missed_runs where reported_at < $1',
);

/** For a clock that is set back: later instants have not been missed, and no later message has been sent. */
export const moveToPast = prepared<object, [now: Date], Db>(
  'lifecycle_policy_missed_runs_move_to_past',
  `with later as (delete from lifecycle_policy_missed_runs where scheduled_at > $1)
   update lifecycle_policies set missed_reported_at = null where missed_reported_at > $1`,
);
