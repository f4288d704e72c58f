/** SQL of runs: due schedules, runs and their run volumes, and how they end. */
import { and, desc, eq, getTableColumns, gt, inArray, lt, sql } from 'drizzle-orm';
import {
  columnsOf,
  type Db,
  deferred,
  type DeferredWrite,
  prepared,
  preparedColumn,
  preparedRow,
  preparedValue,
  type Tx,
} from '../../../platform/db.ts';
import type { SizedRow } from '../../../platform/large-rows.ts';
import type { SnapshotStatus } from '../../snapshots/schema.ts';
import { equals, type Found, type PageQuery, pageReader, updateRow, writeRows } from '../../store-kit.ts';
import type { ScheduleRow } from '../store.ts';
import { lifecyclePolicyRuns, lifecyclePolicyRunVolumes } from './table.ts';

export type RunRow = typeof lifecyclePolicyRuns.$inferSelect;
export type RunVolumeRow = typeof lifecyclePolicyRunVolumes.$inferSelect;
export type DueSchedule = Pick<ScheduleRow, 'id' | 'policyId' | 'regionId' | 'given' | 'createdAt'> & {
  scheduledAt: Date;
  clientId: number;
};

/**
 * Claims due schedules: no other worker gets them until the commit, which sets their next runs. A schedule whose policy is
 * locked is left for the next scan.
 */
export const claimDue = prepared<DueSchedule, [regionIds: number[], now: Date, limit: number], Tx>(
  'lifecycle_policy_due',
  `select s.id, s.policy_id as "policyId", s.region_id as "regionId", s.given, s.created_at as "createdAt",
          s.next_run_at as "scheduledAt", p.client_id as "clientId"
   from lifecycle_policy_schedules s join lifecycle_policies p on p.id = s.policy_id
   where s.region_id = any($1::int[]) and s.next_run_at <= $2
   order by s.next_run_at limit $3
   for update of s skip locked for key share of p skip locked`,
);

/** SQL: the lowest value of an indexed column in the regions. */
const firstOf = (table: string, column: string) =>
  `(select min(first.at) from unnest($1::int[]) as region (id), lateral (
      select ${column} as at from ${table} where region_id = region.id and ${column} is not null
      order by ${column} limit 1) as first)`;
const firstRun = firstOf('lifecycle_policy_schedules', 'next_run_at');
const firstExpiry = firstOf('lifecycle_policy_run_volumes', 'expire_at');

/** The next run of a schedule in these regions; null when there is none. */
export const nextRun = preparedValue<Date | null, [regionIds: number[]], Db>(
  'lifecycle_policy_next_run',
  `select ${firstRun} as at`,
);

/** The next run or expiry in these regions; null when there is none. */
export const nextEvent = preparedValue<Date | null, [regionIds: number[]], Db>(
  'lifecycle_policy_next_event',
  `select least(${firstRun}, ${firstExpiry}) as at`,
);

/** The number of due schedules and expiries, of unfinished runs and of unfinished deletions of their snapshots. */
export const countOpen = preparedValue<number, [regionIds: number[], now: Date], Db>(
  'lifecycle_policy_open',
  `select (select count(*) from lifecycle_policy_schedules where region_id = any($1::int[]) and next_run_at <= $2)
        + (select count(*) from lifecycle_policy_run_volumes where region_id = any($1::int[]) and expire_at <= $2)
        + (select count(*) from lifecycle_policy_runs where region_id = any($1::int[]) and done_at is null)
        + (select count(*) from snapshots where region_id = any($1::int[]) and lifecycle_policy_id is not null
             and deleted_at is not null and observed_generation < generation) as open`,
);

const writeRuns = preparedColumn<string>(
  'lifecycle_policy_runs_insert',
  `insert into lifecycle_policy_runs (id, policy_id, region_id, schedule_id, scheduled_at, done_at, task_id, started_at)
   select r.*, $8::timestamptz
   from unnest($1::uuid[], $2::int[], $3::int[], $4::uuid[], $5::timestamptz[], $6::timestamptz[], $7::uuid[]) as r
   on conflict (schedule_id, scheduled_at) do nothing returning id`,
);

/** Returns the ids of the new runs: after the clock was set back, a run of the same instant may already exist. */
export async function insertRuns(tx: Tx, runs: Omit<RunRow, 'startedAt'>[], now: Date): Promise<Set<string>> {
  const columns = columnsOf(runs, 'id', 'policyId', 'regionId', 'scheduleId', 'scheduledAt', 'doneAt', 'taskId');
  return new Set(await writeRuns(tx, ...columns, now));
}

export const insertRunVolumes = writeRows<Pick<RunVolumeRow, 'id' | 'runId' | 'regionId' | 'volumeId' | 'name'>>(
  'lifecycle_policy_run_volumes_insert',
  ['id', 'runId', 'regionId', 'volumeId', 'name'],
  `insert into lifecycle_policy_run_volumes (id, run_id, region_id, volume_id, name, state)
   select v.*, 'pending' from unnest($1::uuid[], $2::uuid[], $3::int[], $4::uuid[], $5::text[]) as v`,
);

/** The volumes of the policies that are not being deleted. */
export const findVolumeIdsOfPolicies = prepared<{ policyId: number; volumeId: string }, [policyIds: number[]], Tx>(
  'lifecycle_policy_run_candidates',
  `select pv.policy_id as "policyId", pv.volume_id as "volumeId"
   from lifecycle_policy_volumes pv join volumes v on v.id = pv.volume_id and v.deleted_at is null
   where pv.policy_id = any($1::int[]) order by v.created_at, v.id`,
);

/** A run volume, with the properties of its snapshot. */
export interface PendingRunVolume extends Pick<RunVolumeRow, 'id' | 'runId' | 'volumeId' | 'name'> {
  policyId: number;
  scheduleId: string;
  scheduledAt: Date;
  clientId: number;
  userId: number;
  taskId: string | null;
}

/** A run volume, with the state of its snapshot and how long that is retained. */
export interface RunVolume extends RunVolumeRow, PendingRunVolume {
  /** Null when the snapshot was not created or was deleted. */
  snapshotStatus: SnapshotStatus | null;
  snapshotCreatedAt: Date | null;
  /** Why the snapshot failed. */
  snapshotError: string | null;
  /** Whether snapshots expire: not while the policy is paused, or after the schedule or the volume was removed from it. */
  expires: boolean;
  maxQuantity: number | null;
  retentionSeconds: number | null;
}

const columns = `rv.id, rv.run_id as "runId", rv.volume_id as "volumeId", rv.name, r.policy_id as "policyId",
     r.schedule_id as "scheduleId", r.scheduled_at as "scheduledAt", p.client_id as "clientId", p.user_id as "userId",
     r.task_id as "taskId"`;
const withPolicy = `lifecycle_policy_run_volumes rv
     join lifecycle_policy_runs r on r.id = rv.run_id
     join lifecycle_policies p on p.id = r.policy_id`;

/** Locks the pending run volumes among the ids, except those that another worker has locked. */
export const claimPendingRunVolumes = prepared<PendingRunVolume, [ids: string[]], Tx>(
  'lifecycle_policy_run_volumes_claim',
  `select ${columns} from ${withPolicy}
   where rv.id = any($1::uuid[]) and rv.state = 'pending' for update of rv skip locked`,
);

export const setRunVolumesRunning = prepared<object, [ids: string[], snapshotIds: string[]], Tx>(
  'lifecycle_policy_run_volumes_running',
  `update lifecycle_policy_run_volumes rv set state = 'running', snapshot_id = made.snapshot_id
   from unnest($1::uuid[], $2::uuid[]) as made (id, snapshot_id) where rv.id = made.id`,
);

/** Locks run volumes, always in the same order. Those of a deleted policy do not exist: they are deleted with it. */
export const lockRunVolumes = prepared<RunVolume, [ids: string[]], Tx>(
  'lifecycle_policy_run_volumes_lock',
  `select ${columns}, rv.region_id as "regionId", rv.snapshot_id as "snapshotId", rv.state, rv.message,
     rv.expire_at as "expireAt", rv.expired,
     n.status as "snapshotStatus", n.created_at as "snapshotCreatedAt", t.error as "snapshotError",
     (p.status = 'active' and s.id is not null and pv.volume_id is not null) as expires,
     (s.given->>'max_quantity')::int as "maxQuantity", s.retention_seconds as "retentionSeconds"
   from ${withPolicy}
     left join lifecycle_policy_schedules s on s.id = r.schedule_id
     left join lifecycle_policy_volumes pv on pv.policy_id = p.id and pv.volume_id = rv.volume_id
     left join snapshots n on n.id = rv.snapshot_id
     left join tasks t on t.id = n.creator_task_id
   where rv.id = any($1::uuid[]) order by rv.volume_id, rv.id for update of rv`,
);

export const updateRunVolume = updateRow(lifecyclePolicyRunVolumes);

const writeSettled = deferred('lifecycle_policy_run_volumes_settled', {
  parameters: 'jsonb',
  body: `update lifecycle_policy_run_volumes rv set state = s.state, message = s.message, expire_at = s.expire_at
    from jsonb_to_recordset($1) as s (id uuid, state text, message text, expire_at timestamptz) where rv.id = s.id;`,
});

/** Records the results of run volumes, which are locked. */
export const settleRunVolumes: DeferredWrite<
  [settled: Pick<RunVolumeRow, 'id' | 'state' | 'message' | 'expireAt'>[]]
> = async (tx, settled) => {
  if (settled.length === 0) return;
  const rows = settled.map(({ id, state, message, expireAt }) => ({ id, state, message, expire_at: expireAt }));
  await writeSettled(tx, JSON.stringify(rows));
};

/** SQL: whether the run `r` has not ended although all its volumes are settled. */
const isToEnd = `(r.done_at is null and not exists (
  select from lifecycle_policy_run_volumes rv where rv.run_id = r.id and rv.state in ('pending', 'running')))`;

const readRunsToEnd = preparedColumn<string>(
  'lifecycle_policy_runs_to_end',
  `select r.id from lifecycle_policy_runs r
   where r.id = any($1::uuid[]) and ${isToEnd}`,
);

/** The unfinished runs among the ids whose volumes are all settled. */
export async function findRunsToEnd(db: Db, runIds: string[]): Promise<string[]> {
  return runIds.length === 0 ? [] : readRunsToEnd(db, runIds);
}

/** The unfinished runs of the regions whose volumes are all settled: their worker died before it ended them. */
export const findAbandonedRuns = preparedColumn<string, [regionIds: number[], limit: number], Db>(
  'lifecycle_policy_runs_abandoned',
  `select r.id from lifecycle_policy_runs r
   where r.region_id = any($1::int[]) and ${isToEnd}
   order by r.scheduled_at limit $2`,
);

/** A run that has ended. `beganToFail`: any volume failed, and none did in the run before. */
interface EndedRun {
  id: string;
  taskId: string | null;
  failed: boolean;
  beganToFail: boolean;
}

/**
 * Ends those runs whose volumes are all settled, at most one of each schedule, the oldest. Records for their schedules whether
 * any volume failed.
 */
export const endRuns = prepared<EndedRun, [runIds: string[], now: Date], Tx>(
  'lifecycle_policy_runs_end',
  `with first as (
     select distinct on (r.schedule_id) r.id from lifecycle_policy_runs r
     where r.id = any($1::uuid[]) and ${isToEnd}
     order by r.schedule_id, r.scheduled_at),
   locked as (
     select r.id from lifecycle_policy_runs r where r.id in (select id from first) and r.done_at is null
     order by r.id for update),
   ended as (
     update lifecycle_policy_runs r set done_at = $2 from locked l where r.id = l.id
     returning r.id, r.schedule_id, r.task_id, exists (
       select from lifecycle_policy_run_volumes rv where rv.run_id = r.id and rv.state = 'failed') as failed),
   changed as (
     update lifecycle_policy_schedules s set failing = e.failed from ended e
     where s.id = e.schedule_id and s.failing <> e.failed returning s.id)
   select e.id, e.task_id as "taskId", e.failed, e.failed and c.id is not null as "beganToFail" from ended e left join changed c on c.id = e.schedule_id
   order by e.id`,
);

/** A run with the contents of the message about it. */
export interface RunReport {
  runId: string;
  scheduleId: string;
  scheduledAt: Date;
  clientId: number;
  projectId: number;
  regionId: number;
  policyId: number;
  policyName: string;
  volumes: number;
  failed: { volume_id: string; message: string }[];
}

export const readReport = preparedRow<RunReport, [runId: string], Tx>(
  'lifecycle_policy_run_report',
  `select r.id as "runId", r.schedule_id as "scheduleId", r.scheduled_at as "scheduledAt", p.client_id as "clientId",
          p.project_id as "projectId", p.region_id as "regionId", p.id as "policyId", p.name as "policyName",
          count(*) as volumes,
          coalesce(json_agg(json_build_object('volume_id', rv.volume_id, 'message', rv.message) order by rv.volume_id)
            filter (where rv.state = 'failed'), '[]') as failed
   from ${withPolicy}
   where r.id = $1 group by r.id, p.id`,
);

/**
 * Run volumes whose snapshot is complete, failed or deleted, in the order of locking volumes. Unlimited, so that those
 * whose failed snapshot is locked cannot block the others.
 */
export const findRunVolumesToSettle = preparedColumn<string, [regionIds: number[]], Db>(
  'lifecycle_policy_run_volumes_to_settle',
  `select rv.id from lifecycle_policy_run_volumes rv left join snapshots s on s.id = rv.snapshot_id
   where rv.region_id = any($1::int[]) and rv.state = 'running' and s.status is distinct from 'creating'
   order by rv.volume_id, rv.id`,
);

/**
 * Run volumes whose snapshots are to be requested, except those that wait for the deletion of an older snapshot. Clients take
 * turns, and those of a client are in random order, so that those that wait cannot block the others.
 */
export const findPendingRunVolumes = preparedColumn<string, [regionIds: number[]], Db>(
  'lifecycle_policy_run_volumes_pending',
  `select rv.id from ${withPolicy}
   where rv.region_id = any($1::int[]) and rv.state = 'pending' and (rv.message is null or not exists (
     select from snapshots n
     where n.schedule_id = r.schedule_id and n.volume_id = rv.volume_id and n.status = 'deleting'))
   order by row_number() over (partition by p.client_id order by random()) limit 10000`,
);

const bytesOfVolumes = sql<number>`(
  select coalesce(sum(64 + pg_column_size(v.expired)), 0)::bigint from lifecycle_policy_run_volumes v
  where v.run_id = lifecycle_policy_runs.id)`;

const readSizes = pageReader<SizedRow<string>>(lifecyclePolicyRuns, {
  columns: { id: lifecyclePolicyRuns.id, bytes: bytesOfVolumes },
});

/** Newest first. A run may have many volumes, so the rows are read separately. */
export async function list(
  db: Db,
  policyId: number,
  filter: PageQuery & { schedule_id?: string },
): Promise<Found<SizedRow<string>>> {
  const { policyId: policy, scheduleId, scheduledAt, id } = lifecyclePolicyRuns;
  const where = and(eq(policy, policyId), equals(scheduleId, filter.schedule_id));
  return readSizes(db, { where, order: [desc(scheduledAt), desc(id)], page: filter });
}

export async function findRuns(db: Db, ids: string[]): Promise<RunRow[]> {
  return db.select().from(lifecyclePolicyRuns).where(inArray(lifecyclePolicyRuns.id, ids));
}

/** The expired snapshots whose deletion is complete. A deletion takes time and may fail. */
const deletedOfExpired = sql<string[]>`(
  select coalesce(jsonb_agg(one.id order by one.n), '[]')
  from jsonb_array_elements_text(${lifecyclePolicyRunVolumes.expired}) with ordinality as one (id, n)
  where not exists (select from snapshots s where s.id = one.id::uuid))`;

/** `expired` has only the snapshots whose deletion is complete. */
export async function findRunVolumes(db: Db, runIds: string[]): Promise<RunVolumeRow[]> {
  if (runIds.length === 0) return [];
  return db
    .select({ ...getTableColumns(lifecyclePolicyRunVolumes), expired: deletedOfExpired })
    .from(lifecyclePolicyRunVolumes)
    .where(inArray(lifecyclePolicyRunVolumes.runId, runIds))
    .orderBy(lifecyclePolicyRunVolumes.volumeId);
}

/** Deletes runs that ended before this time and whose snapshots are all deleted: the other runs hold the expiry. */
export async function removeOldRuns(db: Db, before: Date): Promise<void> {
  await db.delete(lifecyclePolicyRuns).where(
    and(
      lt(lifecyclePolicyRuns.doneAt, before),
      sql`not exists (select from lifecycle_policy_run_volumes rv join snapshots s on s.id = rv.snapshot_id
                      where rv.run_id = ${lifecyclePolicyRuns.id})`,
    ),
  );
}

/** Deletes the runs of later instants. Returns those whose task has not ended. */
export async function removeRunsAfter(tx: Tx, instant: Date): Promise<string[]> {
  const removed = await tx
    .delete(lifecyclePolicyRuns)
    .where(gt(lifecyclePolicyRuns.scheduledAt, instant))
    .returning({ id: lifecyclePolicyRuns.id, taskId: lifecyclePolicyRuns.taskId, doneAt: lifecyclePolicyRuns.doneAt });
  return removed.filter(({ taskId, doneAt }) => taskId !== null && doneAt === null).map(({ id }) => id);
}
