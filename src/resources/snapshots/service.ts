/**
 * The rules of snapshots. Every change is one transaction: rows, quota, and the task with its job.
 *
 * Invariant: a volume and its snapshots lock together, because they share data; only creating and deleting several
 * snapshots of a volume at a time is allowed. Every change of one of them holds the lock of the volume's row.
 */
import { randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { ClientError, invalidInput, notFound } from '../../errors/catalogue.ts';
import { withZone } from '../../platform/clock.ts';
import type { Db, Tx } from '../../platform/db.ts';
import { newTags, toTagList } from '../../tags/tags.ts';
import type { TagChange, Tags } from '../../tags/tags.ts';
import type { NewTask, ResourceKey } from '../../tasks/tasks.ts';
import { changedColumns, isEmpty, patchedTags, requireFound, requireUnlocked } from '../service-kit.ts';
import type { ServiceDeps, TaskIds } from '../service-kit.ts';
import type { CreateSnapshot, ListSnapshots, Snapshot, SnapshotCollection, UpdateSnapshot } from './schema.ts';
import * as store from './store.ts';
import type { LockedSnapshot, Made, RunKey, SnapshotRow, SnapshotView, VolumeRow } from './store.ts';

export type Snapshots = ReturnType<typeof createSnapshots>;

/** A run of a policy's schedule, for one volume. Schedule, volume and instant identify the snapshot that it makes. */
export interface SnapshotRun extends RunKey {
  /** The actor of the run. */
  context: RequestContext;
  lifecyclePolicyId: number;
  /** May be longer than the API allows, as the schedule's template expands. */
  name: string;
  tags: Tags;
}

/** A snapshot to request, of a volume that the transaction has locked. */
interface SnapshotRequest {
  context: RequestContext;
  volume: VolumeRow;
  given: Pick<SnapshotRow, 'name' | 'description' | 'tags' | 'lifecyclePolicyId' | 'scheduleId' | 'scheduledAt'>;
}

interface DeletionRequest {
  context: RequestContext;
  snapshot: SnapshotRow;
  /** The schedule whose snapshot expires. */
  schedule?: NewTask['schedule'];
}

export function createSnapshots(deps: ServiceDeps) {
  const { db, clock, tasks, quota, idempotency } = deps;

  /** The snapshot, locked with its volume for this transaction; neither has an active task. @throws ClientError 404, 409 */
  const lockForChange = async (tx: Tx, scope: Scope, id: string): Promise<LockedSnapshot> => {
    const [found] = await store.lockAllWithVolumes(tx, [id], scope);
    const snapshot = requireFound(found ?? null, 'snapshot', id);
    requireUnlocked(snapshot.taskId, 'snapshot', id);
    return snapshot;
  };

  /** Requests snapshots from the host. Reserves quota last, because that locks the counters until the commit. */
  const insert = async (tx: Tx, requests: SnapshotRequest[]): Promise<Made[]> => {
    const now = clock.now();
    const rows = requests.map(({ volume, given }) => {
      const { clientId, projectId, regionId, size } = volume;
      const placed = { clientId, projectId, regionId, volumeId: volume.id, size };
      return { id: randomUUID(), ...placed, ...given, creatorTaskId: randomUUID(), createdAt: now };
    });
    await tasks.enqueueAll(
      tx,
      rows.map((row, i) => ({
        context: requests[i]!.context,
        task: {
          id: row.creatorTaskId,
          type: 'create_snapshot',
          key: { resource: 'snapshot', id: row.id, regionId: row.regionId },
          projectId: row.projectId,
          generation: 1,
          createdResources: { snapshots: [row.id] },
          needsSpace: 'volumes' as const,
          schedule: scheduleOf(row),
        },
      })),
    );
    await store.insertAll(tx, rows);
    await reserve(tx, rows);
    return rows.map(({ id, creatorTaskId }) => ({ snapshotId: id, taskId: creatorTaskId }));
  };

  /** In the order of the clients, so that concurrent calls cannot deadlock. */
  const reserve = async (tx: Tx, rows: Pick<SnapshotRow, 'clientId' | 'regionId' | 'size'>[]): Promise<void> => {
    const byScope = Map.groupBy(rows, ({ clientId, regionId }) => `${clientId} ${regionId}`);
    for (const [, of] of [...byScope].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      const size = of.reduce((sum, row) => sum + row.size, 0);
      await quota.reserve(tx, of[0]!, { volume_snapshots_count: of.length, volume_snapshots_size: size });
    }
  };

  /** Requests the removal of locked snapshots. Returns the tasks. */
  const enqueueDeletion = async (tx: Tx, requests: DeletionRequest[]): Promise<string[]> => {
    await store.markDeleting(
      tx,
      requests.map(({ snapshot }) => snapshot.id),
      clock.now(),
    );
    return tasks.enqueueAll(
      tx,
      requests.map(({ context, snapshot, schedule = null }) => ({
        context,
        task: {
          type: 'delete_snapshot',
          key: keyOf(snapshot),
          projectId: snapshot.projectId,
          generation: snapshot.generation + 1,
          schedule,
        },
      })),
    );
  };

  const view = async (scope: Scope, id: string): Promise<SnapshotView> =>
    requireFound(await store.view(db, scope, id), 'snapshot', id);

  const updateRow = async (
    context: RequestContext,
    scope: Scope,
    id: string,
    changes: (current: SnapshotRow) => Partial<Pick<SnapshotRow, 'name' | 'tags'>>,
  ): Promise<Snapshot> => {
    await idempotency.auditedTransaction(db, context, async (tx) => {
      const snapshot = await lockForChange(tx, scope, id);
      const changed = changedColumns(snapshot, changes(snapshot));
      if (!isEmpty(changed)) await store.update(tx, id, { ...changed, updatedAt: clock.now() });
    });
    return toResponse(await view(scope, id), scope.regionName);
  };

  return {
    async create(context: RequestContext, scope: Scope, body: CreateSnapshot): Promise<TaskIds> {
      const tags = newTags(body.tags ?? body.metadata);
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const volume = await store.lockVolume(tx, scope, body.volume_id);
        if (!volume) throw invalidInput([{ path: 'volume_id', message: `volume ${body.volume_id} was not found` }]);
        requireUnlocked(await tasks.lockedBy(tx, volume.id), 'volume', volume.id);
        if (!hasData(volume)) throw withoutData(volume);
        const { name, description = null } = body;
        const noRun = { lifecyclePolicyId: null, scheduleId: null, scheduledAt: null };
        const made = await insert(tx, [{ context, volume, given: { name, description, tags, ...noRun } }]);
        return { tasks: made.map(({ taskId }) => taskId) };
      });
    },

    /**
     * Creates the snapshots of policies' runs, all or none, in the transaction that records the runs: under quotas like
     * any other, and at most once a run. They wait for active tasks of their volumes. Returns the snapshot of each run,
     * new or existing.
     * @throws ClientError when a volume does not exist or has no data, or a quota would be exceeded: then the transaction
     * must roll back
     */
    async createForRuns(tx: Tx, runs: SnapshotRun[]): Promise<Made[]> {
      const volumes = await store.lockVolumes(
        tx,
        runs.map(({ volumeId }) => volumeId),
      );
      const byId = new Map(volumes.map((volume) => [volume.id, volume]));
      const existing = await store.ofRuns(tx, runs);
      const requests: SnapshotRequest[] = [];
      for (const [i, { context, volumeId, name, tags, lifecyclePolicyId, scheduleId, scheduledAt }] of runs.entries()) {
        const volume = byId.get(volumeId);
        if (!volume) throw notFound('volume', volumeId);
        if (existing[i]) continue;
        const willHaveData = !volume.deletedAt && (await tasks.lockedBy(tx, volumeId)) !== null;
        if (!hasData(volume) && !willHaveData) throw withoutData(volume);
        const given = { name, tags, description: null, lifecyclePolicyId, scheduleId, scheduledAt };
        requests.push({ context, volume, given });
      }
      const created = (await insert(tx, requests)).values();
      return existing.map((made) => made ?? created.next().value!);
    },

    /** The snapshots that a schedule made of a volume and that are not being deleted, newest first. */
    ofSchedule: (on: Db | Tx, scheduleId: string, volumeId: string): Promise<SnapshotRow[]> =>
      store.ofSchedule(on, scheduleId, volumeId),

    /**
     * Deletes different snapshots that policies no longer retain, even if an earlier deletion failed. Returns the task of each; null
     * for a snapshot that is locked or already being deleted.
     */
    async expire(tx: Tx, requests: { context: RequestContext; id: string }[]): Promise<(string | null)[]> {
      if (requests.length === 0) return [];
      const ids = requests.map(({ id }) => id);
      const locked = await store.lockAllWithVolumes(tx, ids);
      const byId = new Map(locked.map((snapshot) => [snapshot.id, snapshot]));
      const deletions = requests.flatMap(({ context, id }) => {
        const snapshot = byId.get(id);
        if (!snapshot || snapshot.status === 'deleting') return [];
        if (snapshot.taskId ?? snapshot.copyingTaskId) return [];
        return [{ context, snapshot, schedule: scheduleOf(snapshot) }];
      });
      const taskIds = await enqueueDeletion(tx, deletions);
      const taskOf = new Map(deletions.map(({ snapshot }, i) => [snapshot.id, taskIds[i]!]));
      return ids.map((id) => taskOf.get(id) ?? null);
    },

    async list(scope: Scope, filter: ListSnapshots): Promise<SnapshotCollection> {
      // Instances are not supported, so no snapshot belongs to one.
      if (filter.instance_id !== undefined) return { count: 0, results: [] };
      const { count, rows } = await store.list(db, scope, filter);
      return { count, results: rows.map((row) => toResponse(row, scope.regionName)) };
    },

    async get(scope: Scope, id: string): Promise<Snapshot> {
      return toResponse(await view(scope, id), scope.regionName);
    },

    update: (context: RequestContext, scope: Scope, id: string, body: UpdateSnapshot): Promise<Snapshot> =>
      updateRow(context, scope, id, ({ tags }) => ({ name: body.name, tags: patchedTags(tags, body.tags) })),

    tagsOf: async (scope: Scope, id: string): Promise<Tags> => (await view(scope, id)).tags,

    changeTags: (context: RequestContext, scope: Scope, id: string, change: TagChange): Promise<Snapshot> =>
      updateRow(context, scope, id, ({ tags }) => ({ tags: change(tags) })),

    async delete(context: RequestContext, scope: Scope, id: string): Promise<TaskIds> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const snapshot = await lockForChange(tx, scope, id);
        requireUnlocked(snapshot.copyingTaskId, 'snapshot', id);
        return { tasks: await enqueueDeletion(tx, [{ context, snapshot }]) };
      });
    },

    /** For the service of volumes, which holds the volume's lock: its snapshots, oldest first. */
    ofVolume: (tx: Tx, volumeId: string): Promise<SnapshotRow[]> => store.ofVolume(tx, volumeId),

    /** For the service of volumes: deletes snapshots with their volume, whose task waits for them. @throws ClientError 409 */
    async deleteWithVolume(tx: Tx, rows: SnapshotRow[]): Promise<void> {
      for (const row of rows) requireUnlocked(await store.copyingTask(tx, row.id), 'snapshot', row.id);
      await store.markDeleting(
        tx,
        rows.map(({ id }) => id),
        clock.now(),
      );
      for (const row of rows) await tasks.requestReconcile(tx, keyOf(row), row);
    },

    /** For a clock that is set back: snapshots from the future get the time `now`. */
    moveToPast: (tx: Tx, now: Date): Promise<void> => store.moveToPast(tx, now),

    /** The source of a new volume and its own volume, both locked until the commit. @throws ClientError 400, 409 */
    async lockForCopy(tx: Tx, scope: Scope, id: string): Promise<{ snapshot: SnapshotRow; volume: VolumeRow }> {
      const [snapshot] = await store.lockAllWithVolumes(tx, [id], scope);
      if (!snapshot) throw invalidInput([{ path: 'snapshot_id', message: `snapshot ${id} was not found` }]);
      requireUnlocked(await tasks.lockedBy(tx, snapshot.id), 'snapshot', id);
      if (snapshot.status !== 'available') {
        const message = `snapshot ${id} is in status ${snapshot.status}; a volume can only be created from an available snapshot`;
        throw new ClientError('Conflict', message);
      }
      const [volume] = await store.lockVolumes(tx, [snapshot.volumeId]);
      return { snapshot, volume: volume! };
    },
  };
}

function keyOf({ id, regionId }: SnapshotRow): ResourceKey {
  return { resource: 'snapshot', id, regionId };
}

/** The schedule whose run created the snapshot; null when a client did. */
function scheduleOf({ scheduleId, lifecyclePolicyId }: Pick<SnapshotRow, 'scheduleId' | 'lifecyclePolicyId'>) {
  return scheduleId !== null && lifecyclePolicyId !== null ? { id: scheduleId, policyId: lifecyclePolicyId } : null;
}

/** A new volume has the size of its snapshot. @throws ClientError 400 */
export function requireSizeOf(snapshot: { size: number }, size: number | null | undefined): void {
  if (size === null || size === undefined || size === snapshot.size) return;
  const message = `must equal the snapshot size (${snapshot.size} GiB); extend the volume afterwards`;
  throw invalidInput([{ path: 'size', message }]);
}

/** False for a volume whose creation failed, that lost its data, or that is being deleted. */
function hasData(volume: VolumeRow): boolean {
  return volume.observedSize !== null && !volume.deletedAt && volume.status !== 'error';
}

function withoutData({ id, status }: VolumeRow): ClientError {
  return new ClientError('Conflict', `volume ${id} is in status ${status}; it has no data to make a snapshot of`);
}

function toResponse(snapshot: SnapshotView, regionName: string): Snapshot {
  return {
    id: snapshot.id,
    name: snapshot.name,
    created_at: withZone(snapshot.createdAt),
    creator_task_id: snapshot.creatorTaskId,
    description: snapshot.description,
    project_id: snapshot.projectId,
    region: regionName,
    region_id: snapshot.regionId,
    size: snapshot.size,
    status: snapshot.status,
    tags: toTagList(snapshot.tags),
    task_id: snapshot.taskId,
    updated_at: withZone(snapshot.updatedAt),
    volume_id: snapshot.volumeId,
  };
}
