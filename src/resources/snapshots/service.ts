/**
 * The rules of snapshots. Every change is one transaction: rows, quota, and the task with its job.
 *
 * Invariant: a volume and its snapshots lock together, because they share data; only creating and deleting several
 * snapshots of a volume at a time is allowed. Every change of one of them holds the lock of the volume's row.
 */
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { ClientError, invalidInput, requireNoErrors, resourceLocked } from '../../errors/catalogue.ts';
import { withZone } from '../../platform/clock.ts';
import type { Tx } from '../../platform/db.ts';
import type { PageOfItems } from '../../platform/large-rows.ts';
import { newTags, replacingBy, toTagList, toTagMap, type UpdateTags } from '../../tags/tags.ts';
import {
  changesInRow,
  changesUnderLock,
  patchedTags,
  requireFound,
  requireUnlocked,
  type ServiceDeps,
  tagsInRow,
  type TaskIds,
  toTaggedPage,
  updatesAt,
} from '../service-kit.ts';
import { createSnapshotsOfRuns, hasData, withoutData } from './of-runs.ts';
import { createSnapshotRequests, keyOf } from './requests.ts';
import type { CreateSnapshot, ListSnapshots, Snapshot, UpdateSnapshot } from './schema.ts';
import * as store from './store.ts';
import type { SnapshotOfVolume, SnapshotRow, SnapshotView, VolumeRow } from './store.ts';

export type Snapshots = ReturnType<typeof createSnapshots>;

export function createSnapshots(deps: ServiceDeps) {
  const { db, clock, tasks, idempotency } = deps;
  const requests = createSnapshotRequests(deps);

  /** While neither the snapshot nor its volume has an active task. */
  const change = changesUnderLock(deps, 'snapshot', store.lockWithVolume);
  const changeInRow = changesInRow(updatesAt<SnapshotRow>(clock, store.update));

  const view = async (scope: Scope, id: string): Promise<SnapshotView> =>
    requireFound(await store.view(db, scope, id), 'snapshot', id);

  type Changes = (current: SnapshotRow) => Partial<Pick<SnapshotRow, 'name' | 'tags'>>;

  /** Returns the snapshot as this change leaves it. */
  const updateAndShow = (context: RequestContext, scope: Scope, id: string, changes: Changes): Promise<Snapshot> =>
    change(context, scope, id, async (tx, snapshot) => {
      await changeInRow(tx, snapshot, changes(snapshot));
      return toResponse(requireFound(await store.view(tx, scope, id), 'snapshot', id), scope.regionName);
    });

  return {
    async create(context: RequestContext, scope: Scope, body: CreateSnapshot): Promise<TaskIds> {
      const { tags, errors } = newTags(body);
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const volume = await store.lockVolume(tx, scope, body.volume_id);
        if (!volume)
          throw invalidInput([...errors, { path: 'volume_id', message: `volume ${body.volume_id} not found` }]);
        requireNoErrors(errors);
        requireUnlocked(volume.lockedBy, 'volume', volume.id);
        if (!hasData(volume)) throw withoutData(volume);
        const { name, description = null } = body;
        const noRun = { lifecyclePolicyId: null, scheduleId: null, scheduledAt: null };
        const made = await requests.insert(tx, [{ context, volume, given: { name, description, tags, ...noRun } }]);
        return { tasks: made.map(({ taskId }) => taskId) };
      });
    },

    ...createSnapshotsOfRuns(tasks, requests),

    async list(scope: Scope, filter: ListSnapshots): Promise<PageOfItems<Snapshot>> {
      // Instances are not supported, so no snapshot belongs to one.
      if (filter.instance_id !== undefined) return { count: 0, results: [] };
      return toTaggedPage(await store.list(db, scope, filter), toResponse, scope.regionName);
    },

    async get(scope: Scope, id: string): Promise<Snapshot> {
      return toResponse(await view(scope, id), scope.regionName);
    },

    update: (context: RequestContext, scope: Scope, id: string, body: UpdateSnapshot): Promise<Snapshot> =>
      updateAndShow(context, scope, id, ({ tags }) => ({ name: body.name, tags: patchedTags(tags, body.tags) })),

    replaceTags: (
      context: RequestContext,
      scope: Scope,
      id: string,
      given: NonNullable<UpdateTags>,
    ): Promise<Snapshot> => updateAndShow(context, scope, id, ({ tags }) => ({ tags: replacingBy(given)(tags) })),

    ...tagsInRow(view, change, changeInRow),

    delete: (context: RequestContext, scope: Scope, id: string): Promise<TaskIds> =>
      change(context, scope, id, async (tx, snapshot) => {
        requireNotCopied(snapshot);
        return { tasks: await requests.delete(tx, [{ context, snapshot }]) };
      }),

    /** For the service of volumes, which holds the volume's lock: its snapshots, oldest first. */
    ofVolume: store.ofVolume,

    /** For the service of volumes: deletes snapshots with their volume, whose task waits for them. @throws ClientError 409 */
    async deleteWithVolume(tx: Tx, rows: SnapshotOfVolume[]): Promise<void> {
      for (const row of rows) requireNotCopied(row);
      await store.markDeleting(
        tx,
        rows.map(({ id }) => id),
        clock.now(),
      );
      for (const row of rows) await tasks.requestReconcile(tx, keyOf(row), row);
    },

    /** For a clock that is set back: snapshots from the future get the time `now`. */
    moveToPast: store.moveToPast,

    /** The source of a new volume and its own volume, both locked until the commit. @throws ClientError 400, 409 */
    async lockForCopy(tx: Tx, scope: Scope, id: string): Promise<{ snapshot: SnapshotRow; volume: VolumeRow }> {
      const [snapshot] = await store.lockAllWithVolumes(tx, [id], scope);
      if (!snapshot) throw invalidInput([{ path: 'snapshot_id', message: `snapshot ${id} not found` }]);
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

/** A new volume has the size of its snapshot. @throws ClientError 400 */
export function requireSizeOf(snapshot: { size: number }, size: number | null | undefined): void {
  if (size === null || size === undefined || size === snapshot.size) return;
  const message = `must equal the snapshot size (${snapshot.size} GiB); extend the volume afterwards`;
  throw invalidInput([{ path: 'size', message }]);
}

/** A copy prevents the deletion only, so `task_id` of the snapshot does not show it. @throws ClientError 409 */
function requireNotCopied({ id, copyingTaskId }: Pick<SnapshotOfVolume, 'id' | 'copyingTaskId'>): void {
  if (copyingTaskId !== null) throw resourceLocked('snapshot', id, copyingTaskId, 'copied to a new volume');
}

function toResponse(snapshot: SnapshotView, regionName: string): Snapshot {
  return {
    id: snapshot.id,
    name: snapshot.name,
    created_at: withZone(snapshot.createdAt),
    creator_task_id: snapshot.creatorTaskId,
    description: snapshot.description,
    metadata: toTagMap(snapshot.tags),
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
