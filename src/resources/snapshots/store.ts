/** SQL of snapshots. Writes touch this folder's table only; a volume is read and locked through its own store. */
import { getTableColumns, sql } from 'drizzle-orm';
import {
  columnsOf,
  type Db,
  deferred,
  type DeferredWrite,
  prepared,
  preparedValue,
  type Tx,
} from '../../platform/db.ts';
import { defineWrite } from '../../platform/deferred-writes.ts';
import * as kit from '../store-kit.ts';
import type { ProjectRegion } from '../store-kit.ts';
import * as volumeStore from '../volumes/store.ts';
import type { SnapshotOfVolume, VolumeRow } from '../volumes/store.ts';
import { volumes } from '../volumes/table.ts';
import type { ListSnapshots, SnapshotStatus } from './schema.ts';
import { snapshots } from './table.ts';

export const { lock: lockVolume, lockAll: lockVolumes } = volumeStore;
export type { SnapshotOfVolume, VolumeRow };
export type SnapshotRow = typeof snapshots.$inferSelect;

/** A snapshot with the task that locks it; its status is `restoring` while its volume is reverted to it. */
export type SnapshotView = SnapshotRow & { taskId: string | null };

const resource = 'snapshot';

/** `lockById` takes the row's lock alone: enough to record what was observed. */
export const { lockById, update } = kit.singleRows(snapshots);
/**
 * Expected on the host are snapshots that it created and that are not being deleted. One in status error is not on its
 * host: if a real host has created it, its data was lost, and may come back.
 */
export const { findPending, findKnown, findExpected, remove } = kit.reconciledRows(snapshots, {
  condition: `deleted_at is null and (status = 'available' or (status = 'error' and observed_real))`,
  onHost: `status = 'available'`,
  counted: resource,
});

/** A snapshot with what its creation needs to know of its volume. */
export type SnapshotWithVolume = SnapshotRow & {
  /** Whether the host has ever had the volume. */
  volumeHasData: boolean;
  /** Whether the host is yet to follow a change of the volume. */
  volumeIsPending: boolean;
};
const withVolume = {
  ...getTableColumns(snapshots),
  volumeHasData: sql`${volumes.observedSize} is not null`,
  volumeIsPending: sql`${volumes.observedGeneration} < ${volumes.generation}`,
};
const joins = sql`join ${volumes} on ${volumes.id} = ${snapshots.volumeId}`;

/** Reads a snapshot for its reconcile, together with those of other reconciles. */
export const load = kit.rowById<SnapshotWithVolume>(snapshots, { columns: withVolume, joins }, 'snapshots_with_volume');

const viewColumns = {
  ...getTableColumns(snapshots),
  status: sql<SnapshotStatus>`case when ${volumes.revertTo} = ${snapshots.id} then 'restoring'
    else ${snapshots.status} end`,
  /** Its own task, or else its volume's. */
  taskId: sql<string | null>`coalesce(${kit.activeTask(snapshots.id)}, ${kit.activeTask(snapshots.volumeId)})`,
};
const selection = { columns: viewColumns, joins };
export const view = kit.viewOf<SnapshotView>(snapshots, selection);
const readPage = kit.pagesOf<SnapshotView>(snapshots, { ...selection, counted: resource });

export const list = (db: Db, scope: ProjectRegion, filter: ListSnapshots) =>
  readPage(db, scope, filter, [
    kit.equals(snapshots.volumeId, filter.volume_id),
    kit.equals(snapshots.scheduleId, filter.schedule_id),
    kit.equalsInteger(snapshots.lifecyclePolicyId, filter.lifecycle_policy_id),
  ]);

const initial = { ...kit.newReconciledRow, status: 'creating', observedReal: false } as const;
type NewSnapshot = Omit<SnapshotRow, keyof typeof initial | 'updatedAt'>;

const insertRows = kit.insertRows(snapshots, { counted: resource });

export const insertAll: DeferredWrite<[rows: NewSnapshot[]]> = (tx, rows) =>
  insertRows(
    tx,
    rows.map((row) => ({ ...row, ...initial, updatedAt: row.createdAt })),
  );

/** Records that the host has a generation. A later change has set its own status, and its own job ends it. */
export const recordObserved = deferred<[id: string, generation: number, real: boolean]>('snapshot_observed', {
  parameters: 'uuid, bigint, boolean',
  body: `update snapshots set observed_generation = $2, observed_real = observed_real or $3,
      status = case when generation = $2 then 'available' else status end
    where id = $1;`,
});

const selectRows = kit.selectOf(snapshots);
/** Oldest first. */
export const ofVolume = prepared<SnapshotRow, [volumeId: string]>(
  'snapshots_of_volume',
  `${selectRows} where volume_id = $1 order by created_at, id`,
);
/** The snapshots that a schedule made of a volume and that are not being deleted, newest first. */
export const ofSchedule = prepared<SnapshotRow, [scheduleId: string, volumeId: string]>(
  'snapshots_of_schedule',
  `${selectRows} where schedule_id = $1 and volume_id = $2 and deleted_at is null order by scheduled_at desc, id desc`,
);

/** What identifies the snapshot that a run makes of a volume. */
export type RunKey = Pick<SnapshotRow, 'volumeId'> & { scheduleId: string; scheduledAt: Date };
/** A snapshot, and the task of its creation. */
export interface RequestedSnapshot {
  snapshotId: string;
  taskId: string;
}

const readRuns = prepared<{ [Field in keyof RequestedSnapshot]: RequestedSnapshot[Field] | null }>(
  'snapshots_of_runs',
  `select s.id as "snapshotId", s.creator_task_id as "taskId"
   from unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) with ordinality as run (schedule_id, volume_id, scheduled_at, n)
     left join snapshots s on s.schedule_id = run.schedule_id and s.volume_id = run.volume_id
       and s.scheduled_at = run.scheduled_at
   order by run.n`,
);

/** The snapshot and task of each run that has made one. */
export async function ofRuns(tx: Tx, runs: RunKey[]): Promise<(RequestedSnapshot | null)[]> {
  const rows = await readRuns(tx, ...columnsOf(runs, 'scheduleId', 'volumeId', 'scheduledAt'));
  return rows.map(({ snapshotId, taskId }) => (snapshotId && taskId ? { snapshotId, taskId } : null));
}

/** A locked snapshot. */
export type LockedSnapshot = SnapshotRow & {
  /** The active task that locks it or its volume, or null. */
  lockedBy: string | null;
  /** The active task that creates a volume from it, or null. */
  copyingTaskId: string | null;
};

const lockedColumns = {
  ...getTableColumns(snapshots),
  lockedBy: viewColumns.taskId,
  copyingTaskId: sql.raw(volumeStore.taskOfCopy('snapshots.id')),
};
const named = 'id = any($1) and ($2 is null or project_id = $2) and ($3 is null or region_id = $3)';
// A function: its second statement sees the tasks of those that held the locks of the volumes before.
const lockFunction = defineWrite('snapshots_lock_all', {
  parameters: 'uuid[], int, int',
  body: `
  perform from volumes where id in (select volume_id from snapshots where ${named}) order by id for update;
  return (select coalesce(json_agg(locked order by locked.id), '[]') from (
    ${kit.selectOf(snapshots, { columns: lockedColumns })} where ${named} order by id for update) as locked);`,
  returns: 'json',
});
const lockRows = preparedValue<LockedSnapshot[]>(
  'snapshots_lock_all',
  `select ${lockFunction.name}($1, $2, $3) as locked`,
);

/**
 * Takes the locks of the snapshots' volumes and then of the snapshots: all transactions take them in this order. Without a
 * scope for callers that have checked the ids.
 */
export async function lockAllWithVolumes(
  tx: Tx,
  ids: string[],
  scope: ProjectRegion | null = null,
): Promise<LockedSnapshot[]> {
  const locked = await lockRows(tx, ids, scope?.projectId ?? null, scope?.regionId ?? null);
  return kit.withDates(snapshots, locked);
}

export const lockWithVolume = async (tx: Tx, scope: ProjectRegion, id: string): Promise<LockedSnapshot | null> =>
  (await lockAllWithVolumes(tx, [id], scope))[0] ?? null;

/** Requests the removal of locked snapshots, with the next generation of each. */
export const markDeleting = deferred<[ids: string[], now: Date]>('snapshots_deleting', {
  parameters: 'uuid[], timestamptz',
  body: `update snapshots set status = 'deleting', deleted_at = coalesce(deleted_at, $2), updated_at = $2,
      generation = generation + 1
    where id = any($1);`,
});

/**
 * For a clock that is set back: snapshots from the future get the time `now` and keep their order. A snapshot of a later
 * run no longer belongs to its schedule, which will run at that time again.
 */
export const moveToPast = prepared<object, [now: Date], Tx>(
  'snapshots_move_to_past',
  `update snapshots s
   set created_at = least(s.created_at, $1::timestamptz - later.n * interval '1 microsecond'), updated_at = $1,
       schedule_id = case when s.scheduled_at > $1 then null else s.schedule_id end,
       scheduled_at = case when s.scheduled_at > $1 then null else s.scheduled_at end
   from (select id, row_number() over (order by created_at desc, id desc) as n
         from snapshots where updated_at > $1) as later
   where s.id = later.id`,
);

export const usageOfRows = kit.usageOfRows(snapshots, {
  volume_snapshots_count: 'count(*)',
  volume_snapshots_size: 'sum(size)',
});
