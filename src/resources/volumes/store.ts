/** SQL of volumes. Writes touch this folder's table only; reads also see the snapshots and tasks that hold a volume. */
import { getTableColumns, sql } from 'drizzle-orm';
import { type Db, deferred, type DeferredWrite, prepared, type Tx } from '../../platform/db.ts';
import { hasTags, type TagFilter } from '../../tags/filter.ts';
import * as kit from '../store-kit.ts';
import type { ProjectRegion } from '../store-kit.ts';
import type { ListVolumes } from './schema.ts';
import { volumes } from './table.ts';

export type VolumeRow = typeof volumes.$inferSelect;

/** A volume with its snapshots, oldest first, and the task that locks it. */
export type VolumeView = VolumeRow & { snapshotIds: string[]; taskId: string | null };

const resource = 'volume';

/** Every change of a volume or its snapshots holds the volume's lock from reading to commit. */
export const { lockById, update } = kit.singleRows(volumes);
/** With the volume's own task. */
export const lock = kit.lockWithTask(volumes);
/**
 * Expected on the host are volumes that it created and that are not being changed or deleted. One in status error is not on
 * its host: if a real host has created it, its data was lost, and may come back.
 */
export const { findPending, findKnown, findExpected, remove } = kit.reconciledRows(volumes, {
  condition: `deleted_at is null and observed_size is not null and (status <> 'error' or observed_real)
    and observed_generation = generation`,
  onHost: `status <> 'error'`,
  counted: resource,
});

const snapshotIds = sql<string[]>`array(
  select s.id from snapshots s where s.volume_id = volumes.id order by s.created_at, s.id)`;

/**
 * Its own task, or else one of its snapshots': bytes that are being copied must not change. A snapshot has a task only
 * while its generation is pending. Lateral, so that PostgreSQL never starts from the tasks: with statistics of a quiet
 * hour that took a minute for a list of 1,000 volumes of which each had a snapshot in progress.
 */
const lockingTask = sql<string | null>`coalesce(
  ${kit.activeTask(volumes.id)},
  (select t.id from snapshots s cross join lateral (
     select id, created_on from tasks where resource_id = s.id::text and state in ('NEW', 'RUNNING')
     order by created_on limit 1) t
   where s.volume_id = volumes.id and s.observed_generation < s.generation order by t.created_on limit 1))`;

/** With the task that locks the volume or a snapshot of it. */
export const lockForChange = kit.lockWithTask(volumes, lockingTask, 'volumes_locked_for_change');

/** SQL: the active task that creates a volume from the snapshot; null when there is none. */
export const taskOfCopy = (snapshotId: string) => `(
  select t.id from volumes v cross join lateral (
    select id, created_on from tasks where resource_id = v.id::text and state in ('NEW', 'RUNNING')
    order by created_on limit 1) t
  where v.source_snapshot_id = ${snapshotId} and v.observed_size is null order by t.created_on limit 1)`;

/** What the deletion of a volume needs of its snapshots. */
export interface SnapshotOfVolume {
  id: string;
  clientId: number;
  regionId: number;
  /** The active task that creates a volume from it, or null. */
  copyingTaskId: string | null;
}

/** As `lockForChange`, with the snapshots of the volume, oldest first. */
export const lockToDelete = kit.lockWithTask<typeof volumes, { snapshots: SnapshotOfVolume[] }>(
  volumes,
  lockingTask,
  'volumes_locked_to_delete',
  {
    snapshots: sql.raw(`(
      select coalesce(json_agg(json_build_object('id', s.id, 'clientId', s.client_id, 'regionId', s.region_id,
        'copyingTaskId', ${taskOfCopy('s.id')}) order by s.created_at, s.id), '[]')
      from snapshots s where s.volume_id = volumes.id)`),
  },
);

const columns = { ...getTableColumns(volumes), snapshotIds, taskId: lockingTask };
export const view = kit.viewOf<VolumeView>(volumes, { columns });
const readPage = kit.pagesOf<VolumeView>(volumes, { columns, counted: resource });

export const list = (db: Db, scope: ProjectRegion, filter: ListVolumes, tags: TagFilter) =>
  readPage(db, scope, filter, [
    ...hasTags(volumes.tags, tags),
    kit.contains(volumes.name, filter.name_part),
    filter.id_part ? sql`strpos(${volumes.id}::text, lower(${filter.id_part})) > 0` : undefined,
  ]);

const initial = {
  ...kit.newReconciledRow,
  status: 'creating',
  observedSize: null,
  observedReal: false,
  revertTo: null,
} as const;
type NewVolume = Omit<VolumeRow, keyof typeof initial | 'updatedAt'>;

const insertRow = kit.insertRow(volumes, { counted: resource });

export const insert: DeferredWrite<[volume: NewVolume]> = (tx, volume) =>
  insertRow(tx, { ...volume, ...initial, updatedAt: volume.createdAt });

/** Records what the host has of a generation. A later change has set its own status, and its own job ends it. */
export const recordObserved = deferred<[id: string, generation: number, sizeGib: number, real: boolean]>(
  'volume_observed',
  {
    parameters: 'uuid, bigint, bigint, boolean',
    body: `update volumes set observed_generation = $2, observed_size = $3, observed_real = observed_real or $4,
      status = case when generation = $2 then 'available' else status end,
      revert_to = case when generation = $2 then null else revert_to end
    where id = $1;`,
  },
);

/** Takes the locks of many volumes, always in the same order. */
export const lockAll = prepared<VolumeRow, [ids: string[]], Tx>(
  'volumes_lock_all',
  `${kit.selectOf(volumes)}
   where id = any($1::uuid[]) order by id for update`,
);

/** A volume as its reconcile reads it. */
export type ReconciledVolume = VolumeRow & {
  /** If the volume is being deleted: its snapshots, and whether the host has yet to follow a change of them. */
  snapshots: { id: string; isPending: boolean }[] | null;
};

const snapshotsOfDeleted = sql`case when ${volumes.deletedAt} is not null then (
  select coalesce(json_agg(json_build_object('id', s.id, 'isPending', s.observed_generation < s.generation)), '[]')
  from snapshots s where s.volume_id = volumes.id) end`;

/** Together with those of other reconciles. */
export const load = kit.rowById<ReconciledVolume>(
  volumes,
  { columns: { ...getTableColumns(volumes), snapshots: snapshotsOfDeleted } },
  'volumes_with_snapshots',
);

/** A snapshot is not listed: it never exists without its volume. */
export const usesOfProject = kit.usesOfProject('volume', volumes);

export const usageOfRows = kit.usageOfRows(volumes, { volume_count: 'count(*)', volume_size: 'sum(size)' });
