/** SQL of snapshots. Writes touch this folder's table only; a snapshot's volume is read, and held, through its own store. */
import { and, asc, desc, eq, getTableColumns, inArray, isNull, lt, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import { prepared } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import { rowCounts } from '../../platform/table.ts';
import type { Placed } from '../../tasks/tasks.ts';
import { load as loadVolume, lock as lockVolume, lockAll as lockVolumes } from '../volumes/store.ts';
import type { VolumeRow, Where } from '../volumes/store.ts';
import { volumes } from '../volumes/table.ts';
import type { ListSnapshots, SnapshotStatus } from './schema.ts';
import { snapshots } from './table.ts';

export { loadVolume, lockVolume, lockVolumes };
export type { VolumeRow, Where };
export type SnapshotRow = typeof snapshots.$inferSelect;

/** A snapshot with the task that locks it; its status is `restoring` while its volume is reverted to it. */
export type SnapshotView = SnapshotRow & { taskId: string | null };

const resource = 'snapshot';

const shownStatus = sql<SnapshotStatus>`case when ${volumes.revertTo} = ${snapshots.id} then 'restoring'
  else ${snapshots.status} end`;

/** Its own task, or else its volume's. */
const lockingTask = sql<string | null>`(
  select t.id from tasks t
  where t.resource_id in (snapshots.id::text, snapshots.volume_id::text) and t.state in ('NEW', 'RUNNING')
  order by t.resource_id = snapshots.id::text desc, t.created_on limit 1)`;

const views = (db: Db) =>
  db
    .select({ ...getTableColumns(snapshots), status: shownStatus, taskId: lockingTask })
    .from(snapshots)
    .innerJoin(volumes, eq(volumes.id, snapshots.volumeId));

function standsIn(where: Where): SQL[] {
  return [eq(snapshots.projectId, where.projectId), eq(snapshots.regionId, where.regionId)];
}

export async function view(db: Db, where: Where, id: string): Promise<SnapshotView | null> {
  const [row] = await views(db).where(and(eq(snapshots.id, id), ...standsIn(where)));
  return row ?? null;
}

export async function list(
  db: Db,
  where: Where,
  filter: ListSnapshots,
): Promise<{ count: number; rows: SnapshotView[] }> {
  const filters: SQL[] = [];
  if (filter.volume_id !== undefined) filters.push(eq(snapshots.volumeId, filter.volume_id));
  if (filter.schedule_id !== undefined) filters.push(eq(snapshots.scheduleId, filter.schedule_id));
  if (filter.lifecycle_policy_id !== undefined) {
    filters.push(eq(snapshots.lifecyclePolicyId, filter.lifecycle_policy_id));
  }
  const conditions = and(...standsIn(where), ...filters);
  const page = views(db)
    .where(conditions)
    .orderBy(asc(snapshots.createdAt), asc(snapshots.id))
    .limit(filter.limit ?? 1000)
    .offset(filter.offset ?? 0);
  const counted = filters.length > 0 ? db.$count(snapshots, conditions) : countAll(db, where);
  const [rows, count] = await Promise.all([page, counted]);
  return { count, rows };
}

async function countAll(db: Db, where: Where): Promise<number> {
  const [row] = await db
    .select({ count: rowCounts.count })
    .from(rowCounts)
    .where(
      and(
        eq(rowCounts.resource, resource),
        eq(rowCounts.projectId, where.projectId),
        eq(rowCounts.regionId, where.regionId),
      ),
    );
  return row?.count ?? 0;
}

export type NewSnapshot = Omit<
  SnapshotRow,
  'status' | 'observedReal' | 'generation' | 'observedGeneration' | 'updatedAt' | 'deletedAt'
>;

const insertSnapshots = prepared(
  'snapshots_insert',
  `with given as (
     select * from jsonb_to_recordset($1::jsonb) as given (
       id uuid, "clientId" int, "projectId" int, "regionId" int, "volumeId" uuid, name text, description text, size int8,
       "lifecyclePolicyId" int, "scheduleId" uuid, "scheduledAt" timestamptz, tags jsonb, "creatorTaskId" uuid,
       "createdAt" timestamptz)),
   counted as (
     insert into row_counts as c (resource, project_id, region_id, count)
     select '${resource}', "projectId", "regionId", count(*) from given group by 2, 3 order by 2, 3
     on conflict (resource, project_id, region_id) do update set count = c.count + excluded.count)
   insert into snapshots (id, client_id, project_id, region_id, volume_id, name, description, size, lifecycle_policy_id,
     schedule_id, scheduled_at, tags, creator_task_id, created_at, updated_at, status, generation, observed_generation)
   select given.*, "createdAt", 'creating', 1, 0 from given`,
);

/** Counts the snapshots too, so this is the statement to run late: it locks the projects' counts until the commit. */
export async function insertAll(tx: Tx, rows: NewSnapshot[]): Promise<void> {
  await insertSnapshots(tx, JSON.stringify(rows));
}

/** Takes the locks of the snapshot's volume and then of the snapshot: the order in which everybody takes them. */
export async function lockWithVolume(
  tx: Tx,
  id: string,
  where?: Where,
): Promise<{ snapshot: SnapshotRow; volume: VolumeRow } | null> {
  const [found] = await tx
    .select({ volumeId: snapshots.volumeId })
    .from(snapshots)
    .where(and(eq(snapshots.id, id), ...(where ? standsIn(where) : [])));
  const volume = found && (await lockVolume(tx, found.volumeId));
  const snapshot = volume && (await lock(tx, id));
  return snapshot ? { snapshot, volume } : null;
}

/** Takes the row's lock alone: enough for who records what was observed. */
export async function lock(tx: Tx, id: string): Promise<SnapshotRow | null> {
  const [row] = await tx.select().from(snapshots).where(eq(snapshots.id, id)).for('update');
  return row ?? null;
}

export async function load(db: Db, id: string): Promise<SnapshotRow | null> {
  const [row] = await db.select().from(snapshots).where(eq(snapshots.id, id));
  return row ?? null;
}

/** Oldest first. */
export async function ofVolume(on: Db | Tx, volumeId: string): Promise<SnapshotRow[]> {
  return on
    .select()
    .from(snapshots)
    .where(eq(snapshots.volumeId, volumeId))
    .orderBy(asc(snapshots.createdAt), asc(snapshots.id));
}

/** Those that a schedule made of a volume and that are to stay, newest first. */
export async function ofSchedule(on: Db | Tx, scheduleId: string, volumeId: string): Promise<SnapshotRow[]> {
  return on
    .select()
    .from(snapshots)
    .where(and(eq(snapshots.scheduleId, scheduleId), eq(snapshots.volumeId, volumeId), isNull(snapshots.deletedAt)))
    .orderBy(desc(snapshots.scheduledAt), desc(snapshots.id));
}

/** What a run makes of a volume, by the name that the run gives it. */
export type NameOfRun = Pick<SnapshotRow, 'volumeId'> & { scheduleId: string; scheduledAt: Date };
export interface Made {
  snapshotId: string;
  taskId: string;
}

const readRuns = prepared<{ [Field in keyof Made]: Made[Field] | null }>(
  'snapshots_of_runs',
  `select s.id as "snapshotId", s.creator_task_id as "taskId"
   from unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) with ordinality as run (schedule_id, volume_id, scheduled_at, n)
     left join snapshots s on s.schedule_id = run.schedule_id and s.volume_id = run.volume_id
       and s.scheduled_at = run.scheduled_at
   order by run.n`,
);

/** What each of the runs has made, if it has. */
export async function ofRuns(tx: Tx, runs: NameOfRun[]): Promise<(Made | null)[]> {
  const rows = await readRuns(
    tx,
    runs.map((run) => run.scheduleId),
    runs.map((run) => run.volumeId),
    runs.map((run) => run.scheduledAt),
  );
  return rows.map(({ snapshotId, taskId }) => (snapshotId && taskId ? { snapshotId, taskId } : null));
}

const readCopyingTask = prepared<{ id: string }>(
  'snapshot_copying_task',
  `select t.id from volumes v cross join lateral (
     select id, created_on from tasks where resource_id = v.id::text and state in ('NEW', 'RUNNING')
     order by created_on limit 1) t
   where v.source_snapshot_id = $1 and v.observed_size is null order by t.created_on limit 1`,
);

/** The task that makes a volume from the snapshot just now, or null. */
export async function copyingTask(tx: Tx, id: string): Promise<string | null> {
  const [task] = await readCopyingTask(tx, id);
  return task?.id ?? null;
}

export async function update(tx: Tx, id: string, changes: Partial<SnapshotRow>): Promise<void> {
  await tx.update(snapshots).set(changes).where(eq(snapshots.id, id));
}

const bringBack = prepared(
  'snapshots_set_back',
  `update snapshots s
   set created_at = least(s.created_at, $1::timestamptz - later.n * interval '1 microsecond'), updated_at = $1,
       schedule_id = case when s.scheduled_at > $1 then null else s.schedule_id end,
       scheduled_at = case when s.scheduled_at > $1 then null else s.scheduled_at end
   from (select id, row_number() over (order by created_at desc, id desc) as n
         from snapshots where updated_at > $1) as later
   where s.id = later.id`,
);

/** What is later than now is now, in the order in which it was; what a schedule makes at a later instant is not its own. */
export async function setBack(tx: Tx, now: Date): Promise<void> {
  await bringBack(tx, now);
}

/** Removes the row and counts it out. */
export async function remove(tx: Tx, snapshot: SnapshotRow): Promise<void> {
  await tx.delete(snapshots).where(eq(snapshots.id, snapshot.id));
  await tx
    .update(rowCounts)
    .set({ count: sql`${rowCounts.count} - 1` })
    .where(
      and(
        eq(rowCounts.resource, resource),
        eq(rowCounts.projectId, snapshot.projectId),
        eq(rowCounts.regionId, snapshot.regionId),
      ),
    );
}

/** Snapshots whose desired state the host has not been seen to have. */
export async function unconverged(db: Db, regionIds: number[]): Promise<Placed[]> {
  return db
    .select({ id: snapshots.id, regionId: snapshots.regionId, clientId: snapshots.clientId })
    .from(snapshots)
    .where(and(inArray(snapshots.regionId, regionIds), lt(snapshots.observedGeneration, snapshots.generation)))
    .limit(1000);
}

/** Snapshots that were made and are to stay, by whether they are thought to be whole. */
export async function settled(db: Db, regionIds: number[]): Promise<(Placed & { whole: boolean })[]> {
  return db
    .select({
      id: snapshots.id,
      regionId: snapshots.regionId,
      clientId: snapshots.clientId,
      whole: sql<boolean>`${snapshots.status} = 'available'`,
    })
    .from(snapshots)
    .where(
      and(
        inArray(snapshots.regionId, regionIds),
        isNull(snapshots.deletedAt),
        sql`(${snapshots.status} = 'available' or (${snapshots.status} = 'error' and ${snapshots.observedReal}))`,
      ),
    );
}

/** Those of the given ids that have a row, in whatever state; and in whatever region, where none is given. */
export async function known(on: Db | Tx, ids: string[], where?: Where): Promise<Set<string>> {
  const rows = await on
    .select({ id: snapshots.id })
    .from(snapshots)
    .where(and(inArray(snapshots.id, ids), ...(where ? standsIn(where) : [])));
  return new Set(rows.map((row) => row.id));
}

/** What the rows use of the quota (quota/audit.ts). */
export const usageOfRows = `
  select client_id, region_id, 'volume_snapshots_count', count(*) from snapshots group by 1, 2
  union all select client_id, region_id, 'volume_snapshots_size', sum(size) from snapshots group by 1, 2`;
