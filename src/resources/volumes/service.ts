/** The rules of volumes. Every change is one transaction: rows, quota, and the task with its job. */
import { randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { ClientError, inUse, invalidInput, notFound, resourceLocked } from '../../errors/catalogue.ts';
import type { FieldError } from '../../errors/catalogue.ts';
import type { Idempotency } from '../../idempotency/idempotency.ts';
import { withZone } from '../../platform/clock.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { Quota } from '../../quota/quota.ts';
import { tagFilterOf } from '../../tags/filter.ts';
import { mergeTags, newTags, presentTags, sameTags } from '../../tags/tags.ts';
import type { TagChange, Tags } from '../../tags/tags.ts';
import type { ResourceKey, Tasks } from '../../tasks/tasks.ts';
import type { Regions } from '../regions/service.ts';
import { requireSizeOf } from '../snapshots/service.ts';
import type { Snapshots } from '../snapshots/service.ts';
import type { CreateVolume, ListVolumes, UpdateVolume, Volume, VolumeCollection, VolumeTypeName } from './schema.ts';
import * as store from './store.ts';
import type { VolumeRow, VolumeView } from './store.ts';

/** Puts a new volume under policies. @throws ClientError 400 that names `lifecycle_policy_ids.<i>` */
export type JoinPolicies = (tx: Tx, scope: Scope, volumeId: string, policyIds: number[]) => Promise<void>;

export interface VolumesDeps {
  db: Db;
  clock: Clock;
  tasks: Tasks;
  quota: Quota;
  idempotency: Idempotency;
  regions: Regions;
  snapshots: Snapshots;
  /** Policies stand above volumes, so main wires it. */
  joinPolicies: JoinPolicies;
}

export type Volumes = ReturnType<typeof createVolumes>;
type TaskIds = { tasks: string[] };

export function createVolumes(deps: VolumesDeps) {
  const { db, clock, tasks, quota, idempotency, snapshots } = deps;

  /** The volume, locked for this transaction, it and its snapshots free of tasks. @throws ClientError 404, 409 */
  const lockForChange = async (tx: Tx, scope: Scope, id: string): Promise<VolumeRow> => {
    const volume = await store.lock(tx, id, scope);
    if (!volume) throw notFound('volume', id);
    const taskId = await store.lockingTask(tx, volume.id);
    if (taskId) throw resourceLocked('volume', id, taskId);
    return volume;
  };

  /** Writes a change that the host must follow, with the task that waits for it. */
  const changeOnHost = async (
    tx: Tx,
    context: RequestContext,
    volume: VolumeRow,
    type: string,
    changes: Partial<VolumeRow>,
  ): Promise<TaskIds> => {
    const generation = volume.generation + 1;
    await store.update(tx, volume.id, { ...changes, generation, updatedAt: clock.now() });
    const { projectId } = volume;
    return { tasks: [await tasks.enqueue(tx, context, { type, key: keyOf(volume), projectId, generation })] };
  };

  const view = async (scope: Scope, id: string): Promise<VolumeView> => {
    const found = await store.view(db, scope, id);
    if (!found) throw notFound('volume', id);
    return found;
  };

  /** Of what a volume is made: nothing, or a snapshot, which is held until the commit. */
  const originOf = async (tx: Tx, scope: Scope, body: CreateVolume) => {
    if (body.source === 'new-volume') {
      return { sourceSnapshotId: null, size: body.size, typeName: body.type_name ?? 'standard' };
    }
    if (body.source === 'image') throw noImages();
    const { snapshot, volume } = await snapshots.forCopy(tx, scope, body.snapshot_id);
    requireSizeOf(snapshot, body.size);
    return { sourceSnapshotId: snapshot.id, size: snapshot.size, typeName: body.type_name ?? volume.typeName };
  };

  return {
    async create(context: RequestContext, scope: Scope, body: CreateVolume): Promise<TaskIds> {
      checkCreate(deps.regions.get(scope.regionId)!.volumeTypes, body);
      const tags = newTags(body.tags ?? body.metadata);
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const origin = await originOf(tx, scope, body);
        const id = randomUUID();
        const taskId = await tasks.enqueue(tx, context, {
          type: 'create_volume',
          key: { resource: 'volume', id, regionId: scope.regionId },
          projectId: scope.projectId,
          generation: 1,
          createdResources: { volumes: [id] },
        });
        await store.insert(tx, {
          id,
          clientId: scope.clientId,
          projectId: scope.projectId,
          regionId: scope.regionId,
          name: body.name,
          ...origin,
          tags,
          creatorTaskId: taskId,
          createdAt: clock.now(),
        });
        const policyIds = body.lifecycle_policy_ids ?? [];
        if (policyIds.length > 0) await deps.joinPolicies(tx, scope, id, policyIds);
        await quota.reserve(tx, scope, { volume_count: 1, volume_size: origin.size });
        return { tasks: [taskId] };
      });
    },

    async list(scope: Scope, filter: ListVolumes): Promise<VolumeCollection> {
      const tags = tagFilterOf(filter);
      // No volume is bootable or attached, for there are no images and no instances.
      const none = filter.bootable || filter.has_attachments || filter.instance_id || filter.cluster_id;
      if (none) return { count: 0, results: [] };
      const { count, rows } = await store.list(db, scope, filter, tags);
      return { count, results: rows.map((row) => present(row, scope.regionName)) };
    },

    async get(scope: Scope, id: string): Promise<Volume> {
      return present(await view(scope, id), scope.regionName);
    },

    async update(context: RequestContext, scope: Scope, id: string, body: UpdateVolume): Promise<Volume> {
      await idempotency.auditedTransaction(db, context, async (tx) => {
        const volume = await lockForChange(tx, scope, id);
        const name = body.name ?? volume.name;
        const tags = body.tags === undefined ? volume.tags : mergeTags(volume.tags, body.tags);
        if (name === volume.name && sameTags(tags, volume.tags)) return;
        await store.update(tx, volume.id, { name, tags, updatedAt: clock.now() });
      });
      return present(await view(scope, id), scope.regionName);
    },

    tagsOf: async (scope: Scope, id: string): Promise<Tags> => (await view(scope, id)).tags,

    changeTags: (context: RequestContext, scope: Scope, id: string, change: TagChange): Promise<void> =>
      idempotency.auditedTransaction(db, context, async (tx) => {
        const volume = await lockForChange(tx, scope, id);
        const tags = change(volume.tags);
        if (!sameTags(tags, volume.tags)) await store.update(tx, volume.id, { tags, updatedAt: clock.now() });
      }),

    async extend(context: RequestContext, scope: Scope, id: string, size: number): Promise<TaskIds> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const volume = await lockForChange(tx, scope, id);
        requireWhole(volume);
        if (size === volume.size) return { tasks: [] };
        if (size < volume.size) {
          const message = `must be more than the ${volume.size} GiB that the volume has; a volume cannot shrink`;
          throw invalidInput([{ path: 'size', message }]);
        }
        const answer = await changeOnHost(tx, context, volume, 'extend_volume', { size, status: 'extending' });
        await quota.reserve(tx, volume, { volume_size: size - volume.size });
        return answer;
      });
    },

    /** Puts the bytes of the newest good snapshot back. The answer names no task: the volume does, until it is done. */
    async revert(context: RequestContext, scope: Scope, id: string): Promise<void> {
      await idempotency.auditedTransaction(db, context, async (tx) => {
        const volume = await lockForChange(tx, scope, id);
        // What has lost its data may still be brought back; what never had any has no snapshot either.
        if (volume.deletedAt) throw onlyDeletable(volume);
        const newest = (await snapshots.ofVolume(tx, volume.id)).findLast(({ status }) => status === 'available');
        if (!newest) throw new ClientError('Conflict', `volume ${id} has no snapshot to revert to`);
        await changeOnHost(tx, context, volume, 'revert_volume', { revertTo: newest.id, status: 'reverting' });
      });
    },

    /** `withSnapshots` is the query's list of ids. A volume goes with all of its snapshots or not at all. */
    async delete(context: RequestContext, scope: Scope, id: string, withSnapshots = ''): Promise<TaskIds> {
      const named = snapshotIdsIn(withSnapshots);
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const volume = await lockForChange(tx, scope, id);
        const all = await snapshots.ofVolume(tx, volume.id);
        // Clients name the snapshot that a volume was made from, too.
        const known = await snapshots.known(tx, scope, named);
        const unknown = named.filter((name) => !known.has(name));
        if (unknown.length > 0) {
          const message = (name: string) => `${JSON.stringify(name)} is no snapshot of the project`;
          throw invalidInput(unknown.map((name) => ({ path: 'snapshots', message: message(name) })));
        }
        // One whose deletion failed is to go anyhow.
        const ids = all.filter((one) => !one.deletedAt && !named.includes(one.id)).map((one) => one.id);
        if (ids.length > 0)
          throw inUse('volume', id, [{ kind: 'snapshot', count: ids.length, ids: ids.slice(0, 100) }]);
        await snapshots.deleteWithVolume(tx, all);
        const deletedAt = volume.deletedAt ?? clock.now();
        return changeOnHost(tx, context, volume, 'delete_volume', { status: 'deleting', deletedAt });
      });
    },
  };
}

function keyOf({ id, regionId }: VolumeRow): ResourceKey {
  return { resource: 'volume', id, regionId };
}

function checkCreate(offered: VolumeTypeName[], body: CreateVolume): void {
  const errors: FieldError[] = [];
  if (body.source === 'image') errors.push(...noImages().errors);
  if (body.instance_id_to_attach_to !== undefined) {
    errors.push({ path: 'instance_id_to_attach_to', message: 'there are no instances here to attach a volume to' });
  }
  // From a snapshot, its volume's type unless told otherwise, whatever the region offers by now.
  const typeName = body.type_name ?? (body.source === 'snapshot' ? null : 'standard');
  if (typeName !== null && !offered.includes(typeName)) {
    errors.push({ path: 'type_name', message: `the region offers ${offered.join(', ') || 'no volumes'}` });
  }
  if (errors.length > 0) throw invalidInput(errors);
}

function noImages(): ClientError {
  return invalidInput([{ path: 'source', message: 'must be new-volume or snapshot; there are no images here' }]);
}

/** The ids of a list with commas; none in an empty one, as the Terraform provider sends. */
function snapshotIdsIn(text: string): string[] {
  const ids = text.split(',').map((id) => id.trim().toLowerCase());
  return [...new Set(ids.filter((id) => id !== ''))];
}

/** What a deletion left half done, a creation never finished, or the host lost, has nothing to change. */
function requireWhole(volume: VolumeRow): void {
  if (volume.observedSize === null || volume.deletedAt) throw onlyDeletable(volume);
  if (volume.status === 'error') {
    throw new ClientError(
      'Conflict',
      `volume ${volume.id} has lost its data; it can be reverted to a snapshot, or deleted`,
    );
  }
}

function onlyDeletable({ id, status }: VolumeRow): ClientError {
  return new ClientError('Conflict', `volume ${id} is in status ${status}; it can only be deleted`);
}

function present(volume: VolumeView, regionName: string): Volume {
  return {
    id: volume.id,
    name: volume.name,
    attachments: [],
    bootable: false,
    created_at: withZone(volume.createdAt),
    creator_task_id: volume.creatorTaskId,
    is_root_volume: false,
    limiter_stats: null,
    metadata: Object.fromEntries(Object.entries(volume.tags).map(([key, { value }]) => [key, value])),
    metadata_detailed: presentTags(volume.tags),
    project_id: volume.projectId,
    region: regionName,
    region_id: volume.regionId,
    // While it grows, what the host has so far.
    size: volume.status === 'extending' ? volume.observedSize! : volume.size,
    snapshot_ids: volume.snapshotIds,
    status: volume.status,
    tags: presentTags(volume.tags),
    task_id: volume.taskId,
    updated_at: withZone(volume.updatedAt),
    volume_image_metadata: null,
    volume_type: volume.typeName,
  };
}
