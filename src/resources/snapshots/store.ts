/** SQL of snapshots. Writes touch this folder's table only; a volume is read and locked through its own store. */
import { and, asc, eq, getTableColumns, inArray, isNull, sql } from 'drizzle-orm';
import { deferred, prepared } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { Placed } from '../../tasks/tasks.ts';
import * as kit from '../store-kit.ts';
import type { ProjectRegion } from '../store-kit.ts';
import * as volumeStore from '../volumes/store.ts';
import type { VolumeRow } from '../volumes/store.ts';
import { volumes } from '../volumes/table.ts';
import type { ListSnapshots, SnapshotStatus } from './schema.ts';
import { snapshots } from './table.ts';

export const { load: loadVolume, lock: lockVolume, lockAll: lockVolumes } = volumeStore;
export type { VolumeRow };
export type SnapshotRow = typeof snapshots.$inferSelect;

/** A snapshot with the task that locks it; its status is `restoring` while its volume is reverted to it. */
export type SnapshotView = SnapshotRow & { taskId: string | null };

const resource = 'snapshot';

/** `lockById` takes the row's lock alone: enough to record what was observed. */
export const { find, findById, lockById, update, remove: removeRow } = kit.singleRows(snapshots);
export const { load, findPending, findKnown } = kit.reconciledRows(snapshots);

const viewColumns = {
  ...getTableColumns(snapshots),
  status: sql<SnapshotStatus>`case when ${volumes.revertTo} = ${snapshots.id} then 'restoring'
    else ${snapshots.status} end`,
  /** Its own task, or else its volume's. */
  taskId: sql<string | null>`coalesce(${kit.activeTask(snapshots.id)}, ${kit.activeTask(snapshots.volumeId)})`,
};
const views = (db: Db) => db.select(viewColumns).from(snapshots).innerJoin(volumes, eq(volumes.id, snapshots.volumeId));

export async function view(db: Db, scope: ProjectRegion, id: string): Promise<SnapshotView | null> {
  const [row] = await views(db).where(and(eq(snapshots.id, id), kit.inScope(snapshots, scope)));
  return row ?? null;
}

/** Oldest first. */
export async function list(
  db: Db,
  scope: ProjectRegion,
  filter: ListSnapshots,
): Promise<{ count: number; rows: SnapshotView[] }> {
  return kit.readPage<SnapshotView>(db, views(db), {
    table: snapshots,
    scope,
    filters: [
      kit.equals(snapshots.volumeId, filter.volume_id),
      kit.equals(snapshots.scheduleId, filter.schedule_id),
      kit.equals(snapshots.lifecyclePolicyId, filter.lifecycle_policy_id),
    ],
    order: [asc(snapshots.createdAt), asc(snapshots.id)],
    page: filter,
    counted: resource,
  });
}

const initial = { ...kit.newReconciledRow, status: 'creating', observedReal: false } as const;
export type NewSnapshot = Omit<SnapshotRow, keyof typeof initial | 'updatedAt'>;

const insertRows = kit.insertRows(snapshots, { counted: resource });

/** Run it late: it locks the projects' counts of snapshots until the commit. */
export async function insertAll(tx: Tx, rows: NewSnapshot[]): Promise<void> {
  await insertRows(
    tx,
    rows.map((row) => ({ ...row, ...initial, updatedAt: row.createdAt })),
  );
}

export async function remove(tx: Tx, snapshot: SnapshotRow): Promise<void> {
  await removeRow(tx, snapshot.id);
  await kit.countRows(tx, resource, snapshot, -1);
}

const writeObserved = deferred('snapshot_observed', {
  parameters: 'uuid, bigint, boolean',
  body: `update snapshots set observed_generation = $2, observed_real = observed_real or $3,
      status = case when generation = $2 then 'available' else status end
    where id = $1;`,
});

/** Records that the host has a generation. A later change has set its own status, and its own job ends it. */
export async function recordObserved(
  tx: Tx,
  id: string,
  observed: { generation: number; real: boolean },
): Promise<void> {
  await writeObserved(tx, id, observed.generation, observed.real);
}

/**
 * Takes the locks of the snapshot's volume and then of the snapshot: all transactions take them in this order. Without a
 * scope for callers that have checked the id.
 */
export async function lockWithVolume(
  tx: Tx,
  id: string,
  scope: ProjectRegion | null,
): Promise<{ snapshot: SnapshotRow; volume: VolumeRow } | null> {
  const found = await (scope ? find(tx, scope, id) : findById(tx, id));
  const volume = found && (await volumeStore.lockById(tx, found.volumeId));
  const snapshot = volume && (await lockById(tx, id));
  return snapshot ? { snapshot, volume } : null;
}

const selectRows = kit.textOf(sql`select ${kit.selectList(getTableColumns(snapshots))} from ${snapshots}`);
const readOfVolume = prepared<SnapshotRow>(
  'snapshots_of_volume',
  `${selectRows} where volume_id = $1 order by created_at, id`,
);
const readOfSchedule = prepared<SnapshotRow>(
  'snapshots_of_schedule',
  `${selectRows} where schedule_id = $1 and volume_id = $2 and deleted_at is null order by scheduled_at desc, id desc`,
);

/** Oldest first. */
export async function ofVolume(on: Db | Tx, volumeId: string): Promise<SnapshotRow[]> {
  return readOfVolume(on, volumeId);
}

/** The snapshots that a schedule made of a volume and that are not being deleted, newest first. */
export async function ofSchedule(on: Db | Tx, scheduleId: string, volumeId: string): Promise<SnapshotRow[]> {
  return readOfSchedule(on, scheduleId, volumeId);
}

/** What identifies the snapshot that a run makes of a volume. */
export type RunKey = Pick<SnapshotRow, 'volumeId'> & { scheduleId: string; scheduledAt: Date };
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

/** The snapshot and task of each run that has made one. */
export async function ofRuns(tx: Tx, runs: RunKey[]): Promise<(Made | null)[]> {
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

/** The active task that creates a volume from the snapshot, or null. */
export async function copyingTask(tx: Tx, id: string): Promise<string | null> {
  const [task] = await readCopyingTask(tx, id);
  return task?.id ?? null;
}

const moveRowsToPast = prepared(
  'snapshots_move_to_past',
  `update snapshots s
   set created_at = least(s.created_at, $1::timestamptz - later.n * interval '1 microsecond'), updated_at = $1,
       schedule_id = case when s.scheduled_at > $1 then null else s.schedule_id end,
       scheduled_at = case when s.scheduled_at > $1 then null else s.scheduled_at end
   from (select id, row_number() over (order by created_at desc, id desc) as n
         from snapshots where updated_at > $1) as later
   where s.id = later.id`,
);

/**
 * For a clock that is set back: snapshots from the future get the time `now` and keep their order. A snapshot of a later
 * run no longer belongs to its schedule, which will run at that time again.
 */
export async function moveToPast(tx: Tx, now: Date): Promise<void> {
  await moveRowsToPast(tx, now);
}

/**
 * Snapshots that the host created and that are not being deleted. A snapshot in status error is not on its host: if a
 * real host has created it, its data was lost, and may come back.
 */
export async function findExpected(db: Db, regionIds: number[]): Promise<(Placed & { onHost: boolean })[]> {
  const { id, regionId, clientId, status } = snapshots;
  return db
    .select({ id, regionId, clientId, onHost: sql<boolean>`${status} = 'available'` })
    .from(snapshots)
    .where(
      and(
        inArray(regionId, regionIds),
        isNull(snapshots.deletedAt),
        sql`(${status} = 'available' or (${status} = 'error' and ${snapshots.observedReal}))`,
      ),
    );
}

/** The quota that the rows use (quota/audit.ts). */
export const usageOfRows = `
  select client_id, region_id, 'volume_snapshots_count', count(*) from snapshots group by 1, 2
  union all select client_id, region_id, 'volume_snapshots_size', sum(size) from snapshots group by 1, 2`;
