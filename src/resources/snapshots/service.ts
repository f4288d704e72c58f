/**
 * The rules of snapshots. Every change is one transaction: rows, quota, and the task with its job.
 *
 * A volume and its snapshots lock together, because all of them lie in each other's way; only, snapshots of one volume
 * may be made and deleted beside each other. Whoever changes one of them holds the volume's row.
 */
import { randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { ClientError, invalidInput, notFound, resourceLocked } from '../../errors/catalogue.ts';
import type { Idempotency } from '../../idempotency/idempotency.ts';
import { withZone } from '../../platform/clock.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { Quota } from '../../quota/quota.ts';
import { mergeTags, newTags, presentTags, sameTags } from '../../tags/tags.ts';
import type { TagChange, Tags } from '../../tags/tags.ts';
import type { NewTask, ResourceKey, Tasks } from '../../tasks/tasks.ts';
import type { CreateSnapshot, ListSnapshots, Snapshot, SnapshotCollection, UpdateSnapshot } from './schema.ts';
import * as store from './store.ts';
import type { Made, NameOfRun, SnapshotRow, SnapshotView, VolumeRow } from './store.ts';

export interface SnapshotsDeps {
  db: Db;
  clock: Clock;
  tasks: Tasks;
  quota: Quota;
  idempotency: Idempotency;
}

export type Snapshots = ReturnType<typeof createSnapshots>;
type TaskIds = { tasks: string[] };

/** A run of a policy's schedule, for one volume. Schedule, volume and instant name the snapshot that it makes. */
export interface SnapshotRun extends NameOfRun {
  /** Whom the run acts for. */
  context: RequestContext;
  lifecyclePolicyId: number;
  /** Longer than the pattern of names allows, if the schedule's template makes it so. */
  name: string;
  tags: Tags;
}

/** A snapshot to be asked for, of a volume that the transaction has locked. */
interface Asked {
  context: RequestContext;
  volume: VolumeRow;
  given: Pick<SnapshotRow, 'name' | 'description' | 'tags' | 'lifecyclePolicyId' | 'scheduleId' | 'scheduledAt'>;
}

export function createSnapshots(deps: SnapshotsDeps) {
  const { db, clock, tasks, quota, idempotency } = deps;

  /** The snapshot, locked with its volume for this transaction, and both free of tasks. @throws ClientError 404, 409 */
  const lockForChange = async (tx: Tx, scope: Scope, id: string): Promise<SnapshotRow> => {
    const found = await store.lockWithVolume(tx, id, scope);
    if (!found) throw notFound('snapshot', id);
    const taskId = (await tasks.lockedBy(tx, found.snapshot.id)) ?? (await tasks.lockedBy(tx, found.volume.id));
    if (taskId) throw resourceLocked('snapshot', id, taskId);
    return found.snapshot;
  };

  /** Asks the host for snapshots. Counts them last. */
  const insert = async (tx: Tx, asked: Asked[]): Promise<Made[]> => {
    const now = clock.now();
    const rows = asked.map(({ volume, given }) => {
      const { clientId, projectId, regionId, size } = volume;
      const placed = { clientId, projectId, regionId, volumeId: volume.id, size };
      return { id: randomUUID(), ...placed, ...given, creatorTaskId: randomUUID(), createdAt: now };
    });
    await tasks.enqueueAll(
      tx,
      rows.map((row, i) => ({
        context: asked[i]!.context,
        task: {
          id: row.creatorTaskId,
          type: 'create_snapshot',
          key: { resource: 'snapshot', id: row.id, regionId: row.regionId },
          projectId: row.projectId,
          generation: 1,
          createdResources: { snapshots: [row.id] },
          schedule: scheduleOf(row),
        },
      })),
    );
    await store.insertAll(tx, rows);
    await reserve(tx, rows);
    return rows.map(({ id, creatorTaskId }) => ({ snapshotId: id, taskId: creatorTaskId }));
  };

  /** In the order of the clients, so that two who do this never wait for each other. */
  const reserve = async (tx: Tx, rows: Pick<SnapshotRow, 'clientId' | 'regionId' | 'size'>[]): Promise<void> => {
    const byScope = Map.groupBy(rows, ({ clientId, regionId }) => `${clientId} ${regionId}`);
    for (const [, of] of [...byScope].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      const size = of.reduce((sum, row) => sum + row.size, 0);
      await quota.reserve(tx, of[0]!, { volume_snapshots_count: of.length, volume_snapshots_size: size });
    }
  };

  /** Asks the host to remove a snapshot that is locked. */
  const markDeleted = async (tx: Tx, snapshot: SnapshotRow): Promise<number> => {
    const generation = snapshot.generation + 1;
    const deletedAt = snapshot.deletedAt ?? clock.now();
    await store.update(tx, snapshot.id, { status: 'deleting', deletedAt, updatedAt: clock.now(), generation });
    return generation;
  };

  const enqueueDeletion = async (
    tx: Tx,
    context: RequestContext,
    snapshot: SnapshotRow,
    more: Pick<NewTask, 'schedule'> = {},
  ): Promise<string> => {
    const generation = await markDeleted(tx, snapshot);
    const { projectId } = snapshot;
    return tasks.enqueue(tx, context, {
      type: 'delete_snapshot',
      key: keyOf(snapshot),
      projectId,
      generation,
      ...more,
    });
  };

  const view = async (scope: Scope, id: string): Promise<SnapshotView> => {
    const found = await store.view(db, scope, id);
    if (!found) throw notFound('snapshot', id);
    return found;
  };

  const updateRow = async (
    context: RequestContext,
    scope: Scope,
    id: string,
    change: (current: SnapshotRow) => Pick<SnapshotRow, 'name' | 'tags'>,
  ): Promise<Snapshot> => {
    await idempotency.auditedTransaction(db, context, async (tx) => {
      const snapshot = await lockForChange(tx, scope, id);
      const { name, tags } = change(snapshot);
      if (name === snapshot.name && sameTags(tags, snapshot.tags)) return;
      await store.update(tx, id, { name, tags, updatedAt: clock.now() });
    });
    return present(await view(scope, id), scope.regionName);
  };

  return {
    async create(context: RequestContext, scope: Scope, body: CreateSnapshot): Promise<TaskIds> {
      const tags = newTags(body.tags ?? body.metadata);
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const volume = await store.lockVolume(tx, body.volume_id, scope);
        if (!volume) throw invalidInput([{ path: 'volume_id', message: `volume ${body.volume_id} was not found` }]);
        const taskId = await tasks.lockedBy(tx, volume.id);
        if (taskId) throw resourceLocked('volume', volume.id, taskId);
        if (!hasBytes(volume)) throw withoutBytes(volume);
        const { name, description = null } = body;
        const byHand = { lifecyclePolicyId: null, scheduleId: null, scheduledAt: null };
        const made = await insert(tx, [{ context, volume, given: { name, description, tags, ...byHand } }]);
        return { tasks: made.map(({ taskId }) => taskId) };
      });
    },

    /**
     * Makes the snapshots of policies' runs, all or none, in the transaction that records the runs: under quotas like
     * any other, and never twice. They wait for the tasks that their volumes may have. Answers what each run has made,
     * now or before.
     * @throws ClientError when one of the volumes is gone or has no bytes to copy, or a quota would be exceeded: then the
     * transaction must roll back
     */
    async createForRuns(tx: Tx, runs: SnapshotRun[]): Promise<Made[]> {
      const volumes = await store.lockVolumes(
        tx,
        runs.map(({ volumeId }) => volumeId),
      );
      const byId = new Map(volumes.map((volume) => [volume.id, volume]));
      const before = await store.ofRuns(tx, runs);
      const asked: Asked[] = [];
      for (const [i, { context, volumeId, name, tags, lifecyclePolicyId, scheduleId, scheduledAt }] of runs.entries()) {
        const volume = byId.get(volumeId);
        if (!volume) throw notFound('volume', volumeId);
        if (before[i]) continue;
        const bytes = hasBytes(volume) || (!volume.deletedAt && (await tasks.lockedBy(tx, volumeId)) !== null);
        if (!bytes) throw withoutBytes(volume);
        const given = { name, tags, description: null, lifecyclePolicyId, scheduleId, scheduledAt };
        asked.push({ context, volume, given });
      }
      const now = (await insert(tx, asked)).values();
      return before.map((made) => made ?? now.next().value!);
    },

    /** The snapshots that a schedule made of a volume and that are to stay, newest first; only `available` ones are good. */
    ofSchedule: (on: Db | Tx, scheduleId: string, volumeId: string): Promise<SnapshotRow[]> =>
      store.ofSchedule(on, scheduleId, volumeId),

    /**
     * Deletes a snapshot that a policy is done with, also where that failed before. Answers its task; null when something
     * still holds the snapshot, or it is going already.
     */
    async expire(tx: Tx, context: RequestContext, id: string): Promise<string | null> {
      const found = await store.lockWithVolume(tx, id);
      if (!found || found.snapshot.status === 'deleting') return null;
      const { snapshot, volume } = found;
      const busy = (await tasks.lockedBy(tx, snapshot.id)) ?? (await tasks.lockedBy(tx, volume.id));
      if (busy ?? (await store.copyingTask(tx, snapshot.id))) return null;
      return enqueueDeletion(tx, context, snapshot, { schedule: scheduleOf(snapshot) });
    },

    async list(scope: Scope, filter: ListSnapshots): Promise<SnapshotCollection> {
      // Nothing is attached to an instance, for there are none.
      if (filter.instance_id !== undefined) return { count: 0, results: [] };
      const { count, rows } = await store.list(db, scope, filter);
      return { count, results: rows.map((row) => present(row, scope.regionName)) };
    },

    async get(scope: Scope, id: string): Promise<Snapshot> {
      return present(await view(scope, id), scope.regionName);
    },

    update: (context: RequestContext, scope: Scope, id: string, body: UpdateSnapshot): Promise<Snapshot> =>
      updateRow(context, scope, id, ({ name, tags }) => ({
        name: body.name ?? name,
        tags: body.tags === undefined ? tags : mergeTags(tags, body.tags),
      })),

    tagsOf: async (scope: Scope, id: string): Promise<Tags> => (await view(scope, id)).tags,

    changeTags: (context: RequestContext, scope: Scope, id: string, change: TagChange): Promise<Snapshot> =>
      updateRow(context, scope, id, ({ name, tags }) => ({ name, tags: change(tags) })),

    async delete(context: RequestContext, scope: Scope, id: string): Promise<TaskIds> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const snapshot = await lockForChange(tx, scope, id);
        const copying = await store.copyingTask(tx, snapshot.id);
        if (copying) throw resourceLocked('snapshot', id, copying);
        return { tasks: [await enqueueDeletion(tx, context, snapshot)] };
      });
    },

    /** Those of the ids that are snapshots of the project and region; what is no id of anything is none. */
    known: (tx: Tx, scope: Scope, ids: string[]): Promise<Set<string>> =>
      store.known(
        tx,
        ids.filter((id) => uuid.test(id)),
        scope,
      ),

    /** For the service of volumes, which holds the volume's row: its snapshots, oldest first. */
    ofVolume: (tx: Tx, volumeId: string): Promise<SnapshotRow[]> => store.ofVolume(tx, volumeId),

    /** For the same: deletes snapshots with their volume, whose task waits for them. @throws ClientError 409 */
    async deleteWithVolume(tx: Tx, rows: SnapshotRow[]): Promise<void> {
      for (const row of rows) {
        const copying = await store.copyingTask(tx, row.id);
        if (copying) throw resourceLocked('snapshot', row.id, copying);
        await markDeleted(tx, row);
        await tasks.requestReconcile(tx, keyOf(row), row);
      }
    },

    /** For a clock that is set back: what was made later was made now, and by no schedule where its instant is to come. */
    setBack: (tx: Tx, now: Date): Promise<void> => store.setBack(tx, now),

    /** A snapshot to make a volume from, held until the commit, with its volume. @throws ClientError 400, 409 */
    async forCopy(tx: Tx, scope: Scope, id: string): Promise<{ snapshot: SnapshotRow; volume: VolumeRow }> {
      const found = await store.lockWithVolume(tx, id, scope);
      if (!found) throw invalidInput([{ path: 'snapshot_id', message: `snapshot ${id} was not found` }]);
      const taskId = await tasks.lockedBy(tx, found.snapshot.id);
      if (taskId) throw resourceLocked('snapshot', id, taskId);
      if (found.snapshot.status !== 'available') {
        const message = `snapshot ${id} is in status ${found.snapshot.status}; no volume can be made from it`;
        throw new ClientError('Conflict', message);
      }
      return found;
    },
  };
}

function keyOf({ id, regionId }: SnapshotRow): ResourceKey {
  return { resource: 'snapshot', id, regionId };
}

/** The schedule whose run made it; null: a person did. */
function scheduleOf({ scheduleId, lifecyclePolicyId }: Pick<SnapshotRow, 'scheduleId' | 'lifecyclePolicyId'>) {
  return scheduleId !== null && lifecyclePolicyId !== null ? { id: scheduleId, policyId: lifecyclePolicyId } : null;
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A volume is made as large as its snapshot. @throws ClientError 400 */
export function requireSizeOf(snapshot: { size: number }, size: number | null | undefined): void {
  if (size === null || size === undefined || size === snapshot.size) return;
  const message = `must be the ${snapshot.size} GiB of the snapshot; extend the volume afterwards`;
  throw invalidInput([{ path: 'size', message }]);
}

/** What failed in its creation has none, what is lost or going has none worth keeping. */
function hasBytes(volume: VolumeRow): boolean {
  return volume.observedSize !== null && !volume.deletedAt && volume.status !== 'error';
}

function withoutBytes({ id, status }: VolumeRow): ClientError {
  return new ClientError('Conflict', `volume ${id} is in status ${status}; there is nothing to make a snapshot of`);
}

function present(snapshot: SnapshotView, regionName: string): Snapshot {
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
    tags: presentTags(snapshot.tags),
    task_id: snapshot.taskId,
    updated_at: withZone(snapshot.updatedAt),
    volume_id: snapshot.volumeId,
  };
}
