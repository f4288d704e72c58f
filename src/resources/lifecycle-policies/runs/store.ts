/** SQL of runs: what is due, what was made of it, and what is to go. */
import { and, desc, eq, getTableColumns, gt, inArray, lt, sql } from 'drizzle-orm';
import { prepared } from '../../../platform/db.ts';
import type { Db, Tx } from '../../../platform/db.ts';
import type { SizedRow } from '../../../platform/large-rows.ts';
import type { SnapshotStatus } from '../../snapshots/schema.ts';
import type { ScheduleRow } from '../store.ts';
import { lifecyclePolicyRuns, lifecyclePolicyRunVolumes } from './table.ts';

export type RunRow = typeof lifecyclePolicyRuns.$inferSelect;
export type RunVolumeRow = typeof lifecyclePolicyRunVolumes.$inferSelect;
export type DueSchedule = Pick<ScheduleRow, 'id' | 'policyId' | 'regionId' | 'given' | 'createdAt'> & {
  scheduledAt: Date;
};

const readDue = prepared<DueSchedule>(
  'lifecycle_policy_due',
  `select s.id, s.policy_id as "policyId", s.region_id as "regionId", s.given, s.created_at as "createdAt",
          s.next_run_at as "scheduledAt"
   from lifecycle_policy_schedules s join lifecycle_policies p on p.id = s.policy_id
   where s.region_id = any($1::int[]) and s.next_run_at <= $2
   order by s.next_run_at limit $3
   for update of s skip locked for key share of p skip locked`,
);

/**
 * Claims schedules that are due: no other worker gets them until the commit, which gives them their next instant. One
 * whose policy is being changed just now waits for the next look.
 */
export function claimDue(tx: Tx, regionIds: number[], now: Date, limit: number): Promise<DueSchedule[]> {
  return readDue(tx, regionIds, now, limit);
}

/** The first of an indexed column in each of the regions. */
const firstOf = (table: string, column: string) =>
  `(select min(first.at) from unnest($1::int[]) as region (id), lateral (
      select ${column} as at from ${table} where region_id = region.id and ${column} is not null
      order by ${column} limit 1) as first)`;
const firstRun = firstOf('lifecycle_policy_schedules', 'next_run_at');
const firstExpiry = firstOf('lifecycle_policy_run_volumes', 'expire_at');

const readNextRun = prepared<{ at: Date | null }>('lifecycle_policy_next_run', `select ${firstRun} as at`);
const readNextEvent = prepared<{ at: Date | null }>(
  'lifecycle_policy_next_event',
  `select least(${firstRun}, ${firstExpiry}) as at`,
);

/** When a schedule of these regions is due next; null: none is. */
export async function nextRun(db: Db, regionIds: number[]): Promise<Date | null> {
  return (await readNextRun(db, regionIds))[0]!.at;
}

/** When something is due next in these regions, a run or an expiry; null: nothing is. */
export async function nextEvent(db: Db, regionIds: number[]): Promise<Date | null> {
  return (await readNextEvent(db, regionIds))[0]!.at;
}

const readOpen = prepared<{ open: number }>(
  'lifecycle_policy_open',
  `select (select count(*) from lifecycle_policy_schedules where region_id = any($1::int[]) and next_run_at <= $2)
        + (select count(*) from lifecycle_policy_run_volumes where region_id = any($1::int[]) and expire_at <= $2)
        + (select count(*) from lifecycle_policy_runs where region_id = any($1::int[]) and done_at is null) as open`,
);

/** How much is due and not done in these regions. */
export async function countOpen(db: Db, regionIds: number[], now: Date): Promise<number> {
  return (await readOpen(db, regionIds, now))[0]!.open;
}

const writeRuns = prepared<{ id: string }>(
  'lifecycle_policy_runs_insert',
  `insert into lifecycle_policy_runs (id, policy_id, region_id, schedule_id, scheduled_at, done_at, started_at)
   select r.*, $7::timestamptz
   from unnest($1::uuid[], $2::int[], $3::int[], $4::uuid[], $5::timestamptz[], $6::timestamptz[]) as r
   on conflict (schedule_id, scheduled_at) do nothing returning id`,
);

/** Returns the ids of those that there was no run for: a clock that was set back brings the same instants again. */
export async function insertRuns(tx: Tx, runs: Omit<RunRow, 'startedAt'>[], now: Date): Promise<Set<string>> {
  const inserted = await writeRuns(
    tx,
    runs.map((run) => run.id),
    runs.map((run) => run.policyId),
    runs.map((run) => run.regionId),
    runs.map((run) => run.scheduleId),
    runs.map((run) => run.scheduledAt),
    runs.map((run) => run.doneAt),
    now,
  );
  return new Set(inserted.map((row) => row.id));
}

const writeVolumes = prepared(
  'lifecycle_policy_run_volumes_insert',
  `insert into lifecycle_policy_run_volumes (id, run_id, region_id, volume_id, name, state)
   select v.*, 'pending' from unnest($1::uuid[], $2::uuid[], $3::int[], $4::uuid[], $5::text[]) as v`,
);

export type NewRunVolume = Pick<RunVolumeRow, 'id' | 'runId' | 'regionId' | 'volumeId' | 'name'>;

export async function insertVolumes(tx: Tx, volumes: NewRunVolume[]): Promise<void> {
  await writeVolumes(
    tx,
    volumes.map((one) => one.id),
    volumes.map((one) => one.runId),
    volumes.map((one) => one.regionId),
    volumes.map((one) => one.volumeId),
    volumes.map((one) => one.name),
  );
}

const readVolumesOfPolicies = prepared<{ policyId: number; volumeId: string }>(
  'lifecycle_policy_run_candidates',
  `select pv.policy_id as "policyId", pv.volume_id as "volumeId"
   from lifecycle_policy_volumes pv join volumes v on v.id = pv.volume_id and v.deleted_at is null
   where pv.policy_id = any($1::int[]) order by v.created_at, v.id`,
);

/** What the policies are to make snapshots of. */
export function volumesOfPolicies(tx: Tx, policyIds: number[]): Promise<{ policyId: number; volumeId: string }[]> {
  return readVolumesOfPolicies(tx, policyIds);
}

/** A volume of a run, with what its snapshot is made by. */
export interface PendingVolume extends Pick<RunVolumeRow, 'id' | 'runId' | 'volumeId' | 'name'> {
  policyId: number;
  scheduleId: string;
  scheduledAt: Date;
  clientId: number;
  userId: number;
}

/** The same with how the snapshot is, and how long it is kept. */
export interface RunVolume extends RunVolumeRow, PendingVolume {
  /** Null: there is none, or none any more. */
  snapshotStatus: SnapshotStatus | null;
  snapshotCreatedAt: Date | null;
  /** Why the snapshot failed. */
  snapshotError: string | null;
  /** Whether anything expires: not while the policy is paused, nor when the schedule or the volume is no longer in it. */
  expires: boolean;
  maxQuantity: number | null;
  retentionSeconds: number | null;
}

const columns = `rv.id, rv.run_id as "runId", rv.volume_id as "volumeId", rv.name, r.policy_id as "policyId",
     r.schedule_id as "scheduleId", r.scheduled_at as "scheduledAt", p.client_id as "clientId", p.user_id as "userId"`;
const withPolicy = `lifecycle_policy_run_volumes rv
     join lifecycle_policy_runs r on r.id = rv.run_id
     join lifecycle_policies p on p.id = r.policy_id`;

/** Of the ids given, those whose snapshots nobody has asked for, nor is about to: the rows, locked. */
export const claimPending = prepared<PendingVolume>(
  'lifecycle_policy_run_volumes_claim',
  `select ${columns} from ${withPolicy}
   where rv.id = any($1::uuid[]) and rv.state = 'pending' for update of rv skip locked`,
);

/** Takes ids, and the ids of their snapshots. */
export const setRunning = prepared(
  'lifecycle_policy_run_volumes_running',
  `update lifecycle_policy_run_volumes rv set state = 'running', snapshot_id = made.snapshot_id
   from unnest($1::uuid[], $2::uuid[]) as made (id, snapshot_id) where rv.id = made.id`,
);

const lockVolume = prepared<RunVolume>(
  'lifecycle_policy_run_volume_lock',
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
   where rv.id = $1 for update of rv`,
);

/** Null when the policy is gone: then nobody asks any more what became of its runs. */
export async function lock(tx: Tx, id: string): Promise<RunVolume | null> {
  return (await lockVolume(tx, id))[0] ?? null;
}

export async function updateVolume(tx: Tx, id: string, changes: Partial<RunVolumeRow>): Promise<void> {
  await tx.update(lifecyclePolicyRunVolumes).set(changes).where(eq(lifecyclePolicyRunVolumes.id, id));
}

const hasOpenVolumes = (run: string) => `exists (
  select from lifecycle_policy_run_volumes rv where rv.run_id = ${run} and rv.state in ('pending', 'running'))`;

const readSettledAmong = prepared<{ id: string }>(
  'lifecycle_policy_runs_settled_among',
  `select r.id from lifecycle_policy_runs r
   where r.id = any($1::uuid[]) and r.done_at is null and not ${hasOpenVolumes('r.id')}`,
);

/** Those of some runs that are to be ended. */
export async function settledAmong(db: Db, runIds: string[]): Promise<string[]> {
  return runIds.length === 0 ? [] : (await readSettledAmong(db, runIds)).map((row) => row.id);
}

const readSettledRuns = prepared<{ id: string }>(
  'lifecycle_policy_runs_settled',
  `select r.id from lifecycle_policy_runs r
   where r.region_id = any($1::int[]) and r.done_at is null and not ${hasOpenVolumes('r.id')}
   order by r.scheduled_at limit $2`,
);

/** Runs that are to be ended, and whose end somebody died over. */
export async function settledRuns(db: Db, regionIds: number[], limit: number): Promise<string[]> {
  return (await readSettledRuns(db, regionIds, limit)).map((row) => row.id);
}

const endOne = prepared<{ scheduleId: string; failed: boolean }>(
  'lifecycle_policy_run_end',
  `update lifecycle_policy_runs r set done_at = $2 where r.id = $1 and r.done_at is null and not ${hasOpenVolumes('r.id')}
   returning r.schedule_id as "scheduleId", exists (
     select from lifecycle_policy_run_volumes rv where rv.run_id = r.id and rv.state = 'failed') as failed`,
);

/** Ends a run whose volumes are all settled, and says whether any of them failed; null when there is nothing to end. */
export async function endRun(tx: Tx, runId: string, now: Date) {
  return (await endOne(tx, runId, now))[0] ?? null;
}

const writeFailing = prepared<{ id: string }>(
  'lifecycle_policy_schedule_failing',
  'update lifecycle_policy_schedules set failing = $2 where id = $1 and failing <> $2 returning id',
);

/** Says whether it was otherwise before. */
export async function setFailing(tx: Tx, scheduleId: string, failing: boolean): Promise<boolean> {
  return (await writeFailing(tx, scheduleId, failing)).length > 0;
}

/** A run with everything that a message about it tells. */
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

const readReport = prepared<RunReport>(
  'lifecycle_policy_run_report',
  `select r.id as "runId", r.schedule_id as "scheduleId", r.scheduled_at as "scheduledAt", p.client_id as "clientId",
          p.project_id as "projectId", p.region_id as "regionId", p.id as "policyId", p.name as "policyName",
          count(*) as volumes,
          coalesce(json_agg(json_build_object('volume_id', rv.volume_id, 'message', rv.message) order by rv.volume_id)
            filter (where rv.state = 'failed'), '[]') as failed
   from ${withPolicy}
   where r.id = $1 group by r.id, p.id`,
);

export async function report(tx: Tx, runId: string): Promise<RunReport> {
  return (await readReport(tx, runId))[0]!;
}

const readSettled = prepared<{ id: string }>(
  'lifecycle_policy_run_settled',
  `select rv.id from lifecycle_policy_run_volumes rv left join snapshots s on s.id = rv.snapshot_id
   where rv.region_id = any($1::int[]) and rv.state = 'running' and s.status is distinct from 'creating'
   order by rv.volume_id, rv.id limit $2`,
);

/** Those whose snapshot is made, failed or gone; in the order of their volumes, which is the order to hold these in. */
export async function settled(db: Db, regionIds: number[], limit: number): Promise<string[]> {
  return (await readSettled(db, regionIds, limit)).map((row) => row.id);
}

const readPending = prepared<{ id: string }>(
  'lifecycle_policy_run_volumes_pending',
  `select rv.id from lifecycle_policy_run_volumes rv join lifecycle_policy_runs r on r.id = rv.run_id
   where rv.region_id = any($1::int[]) and rv.state = 'pending' and (rv.message is null or not exists (
     select from snapshots n
     where n.schedule_id = r.schedule_id and n.volume_id = rv.volume_id and n.status = 'deleting'))
   order by rv.run_id, rv.id`,
);

/**
 * All whose snapshots are still to be asked for, but not while they wait for an older one to go: no limit, so that those
 * that have to wait keep no others from it.
 */
export async function pending(db: Db, regionIds: number[]): Promise<string[]> {
  return (await readPending(db, regionIds)).map((row) => row.id);
}

const bytesOfVolumes = sql<number>`(
  select coalesce(sum(64 + pg_column_size(v.expired)), 0)::bigint from lifecycle_policy_run_volumes v
  where v.run_id = lifecycle_policy_runs.id)`;

/** A run has a row for each volume, so runs are read apart. */
export async function list(
  db: Db,
  policyId: number,
  filter: { schedule_id?: string; limit?: number; offset?: number },
): Promise<{ count: number; rows: SizedRow<string>[] }> {
  const conditions = and(
    eq(lifecyclePolicyRuns.policyId, policyId),
    filter.schedule_id === undefined ? undefined : eq(lifecyclePolicyRuns.scheduleId, filter.schedule_id),
  );
  const [rows, count] = await Promise.all([
    db
      .select({ id: lifecyclePolicyRuns.id, bytes: bytesOfVolumes })
      .from(lifecyclePolicyRuns)
      .where(conditions)
      .orderBy(desc(lifecyclePolicyRuns.scheduledAt), desc(lifecyclePolicyRuns.id))
      .limit(filter.limit ?? 100)
      .offset(filter.offset ?? 0),
    db.$count(lifecyclePolicyRuns, conditions),
  ]);
  return { count, rows };
}

export async function rowsById(db: Db, ids: string[]): Promise<RunRow[]> {
  return db.select().from(lifecyclePolicyRuns).where(inArray(lifecyclePolicyRuns.id, ids));
}

/** Of those that were let go, the ones that have gone: a removal takes its time, and may fail. */
const goneOfExpired = sql<string[]>`(
  select coalesce(jsonb_agg(one.id order by one.n), '[]')
  from jsonb_array_elements_text(${lifecyclePolicyRunVolumes.expired}) with ordinality as one (id, n)
  where not exists (select from snapshots s where s.id = one.id::uuid))`;

export async function volumesOfRuns(db: Db, runIds: string[]): Promise<RunVolumeRow[]> {
  if (runIds.length === 0) return [];
  return db
    .select({ ...getTableColumns(lifecyclePolicyRunVolumes), expired: goneOfExpired })
    .from(lifecyclePolicyRunVolumes)
    .where(inArray(lifecyclePolicyRunVolumes.runId, runIds))
    .orderBy(lifecyclePolicyRunVolumes.volumeId);
}

/** Forgets runs that ended before an instant and whose snapshots are all gone: the others say when those expire. */
export async function forget(db: Db, before: Date): Promise<void> {
  await db.delete(lifecyclePolicyRuns).where(
    and(
      lt(lifecyclePolicyRuns.doneAt, before),
      sql`not exists (select from lifecycle_policy_run_volumes rv join snapshots s on s.id = rv.snapshot_id
                      where rv.run_id = ${lifecyclePolicyRuns.id})`,
    ),
  );
}

/** Forgets the runs of later instants, done or not. */
export async function forgetAfter(tx: Tx, instant: Date): Promise<void> {
  await tx.delete(lifecyclePolicyRuns).where(gt(lifecyclePolicyRuns.scheduledAt, instant));
}
