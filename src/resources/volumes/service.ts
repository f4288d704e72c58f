/** The rules of volumes. Every change is one transaction: rows, quota, and the task with its job. */
import { randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { ClientError, type FieldError, invalidInput, requireNoErrors } from '../../errors/catalogue.ts';
import type { IsInvalid, ValidFields } from '../../errors/valid-fields.ts';
import { withZone } from '../../platform/clock.ts';
import type { Tx } from '../../platform/db.ts';
import type { PageOfItems } from '../../platform/large-rows.ts';
import { tagFilterOf } from '../../tags/filter.ts';
import { errorsOfNewTags, newTags, toTagList, toTagMap } from '../../tags/tags.ts';
import type { ResourceKey } from '../../tasks/tasks.ts';
import type { Regions } from '../regions/service.ts';
import {
  changesInRow,
  changesOnHost,
  changesUnderLock,
  patchedTags,
  requireFound,
  requireGrowth,
  requireProject,
  type ServiceDeps,
  sizeErrors,
  tagsInRow,
  type TaskIds,
  toTaggedPage,
  updatesAt,
  withErrors,
} from '../service-kit.ts';
import { requireSizeOf, type Snapshots } from '../snapshots/service.ts';
import type { CreateVolume, ListVolumes, UpdateVolume, Volume, VolumeTypeName } from './schema.ts';
import * as store from './store.ts';
import type { VolumeRow, VolumeView } from './store.ts';

/** The policies of new volumes. */
interface PoliciesOfVolumes {
  /** Names each unknown policy as `lifecycle_policy_ids.<i>`; the known ones are held until the transaction ends. */
  newVolumeErrors(tx: Tx, scope: Scope, policyIds: number[]): Promise<FieldError[]>;
  joinNewVolume(tx: Tx, volumeId: string, policyIds: number[]): Promise<void>;
}

interface VolumesDeps extends ServiceDeps {
  regions: Regions;
  snapshots: Snapshots;
  /** Policies depend on volumes, so main wires them. */
  policies: PoliciesOfVolumes;
}

export type Volumes = ReturnType<typeof createVolumes>;

export function createVolumes(deps: VolumesDeps) {
  const { db, clock, tasks, quota, idempotency, snapshots } = deps;

  /** While neither the volume nor a snapshot of it has an active task. */
  const change = changesUnderLock(deps, 'volume', store.lockForChange);
  const deletion = changesUnderLock(deps, 'volume', store.lockToDelete);
  const update = updatesAt<VolumeRow>(clock, store.update);
  const changeOnHost = changesOnHost(tasks, keyOf, update);
  const changeInRow = changesInRow(update);

  const view = async (scope: Scope, id: string): Promise<VolumeView> =>
    requireFound(await store.view(db, scope, id), 'volume', id);

  type Changes = (volume: VolumeRow) => Partial<Pick<VolumeRow, 'name' | 'tags' | 'typeName'>>;

  /** Returns the volume from the transaction, whose result an `Idempotency-Key` repeats. */
  const updateAndShow = (context: RequestContext, scope: Scope, id: string, changes: Changes): Promise<Volume> =>
    change(context, scope, id, async (tx, volume) => {
      await changeInRow(tx, volume, changes(volume));
      return toResponse(requireFound(await store.view(tx, scope, id), 'volume', id), scope.regionName);
    });

  return {
    /** For an invalid body. A rule that needs an invalid field is skipped. */
    bodyErrors(
      body: ValidFields<CreateVolume>,
      isInvalid: IsInvalid,
      { region_id }: { region_id?: number },
    ): FieldError[] {
      const offered = deps.regions.get(region_id)?.volumeTypes;
      const isTypeValid = body.source !== undefined && !isInvalid('type_name');
      return [
        ...errorsOfNewTags(body, isInvalid),
        ...instanceErrors(body),
        ...(body.source === 'image' ? [noImages] : []),
        ...(offered && isTypeValid ? newTypeErrors(offered, body) : []),
      ];
    },

    async create(context: RequestContext, scope: Scope, body: CreateVolume): Promise<TaskIds> {
      const { clientId, projectId, regionId } = scope;
      const { tags, errors } = newTags(body);
      errors.push(...instanceErrors(body), ...newTypeErrors(offeredTypes(deps, scope), body));
      const policyIds = body.lifecycle_policy_ids ?? [];
      return idempotency.auditedTransaction(db, context, async (tx) => {
        await requireProject(tx, projectId);
        const policyErrors = await deps.policies.newVolumeErrors(tx, scope, policyIds);
        const source = await withErrors([...errors, ...policyErrors], sourceOf(snapshots, tx, scope, body));
        const id = randomUUID();
        const taskId = await tasks.enqueue(tx, context, {
          type: 'create_volume',
          key: keyOf({ id, regionId }),
          projectId,
          generation: 1,
          createdResources: { volumes: [id] },
        });
        const placed = { clientId, projectId, regionId };
        const given = { name: body.name, ...source, tags };
        await store.insert(tx, { id, ...placed, ...given, creatorTaskId: taskId, createdAt: clock.now() });
        if (policyIds.length > 0) await deps.policies.joinNewVolume(tx, id, policyIds);
        await quota.reserve(tx, scope, { volume_count: 1, volume_size: source.size });
        return { tasks: [taskId] };
      });
    },

    async list(scope: Scope, filter: ListVolumes): Promise<PageOfItems<Volume>> {
      const tags = tagFilterOf(filter);
      // No volume is bootable or attached: images and instances are not supported.
      const none = filter.bootable || filter.has_attachments || filter.instance_id || filter.cluster_id;
      if (none) return { count: 0, results: [] };
      return toTaggedPage(await store.list(db, scope, filter, tags), toResponse, scope.regionName);
    },

    async get(scope: Scope, id: string): Promise<Volume> {
      return toResponse(await view(scope, id), scope.regionName);
    },

    async update(context: RequestContext, scope: Scope, id: string, body: UpdateVolume): Promise<Volume> {
      const { name, tags, size } = body;
      return updateAndShow(context, scope, id, (volume) => {
        return { name, tags: patchedTags(volume.tags, tags, sizeErrors(volume.size, size)) };
      });
    },

    /** Types differ in their price only, so the host need not follow. */
    async retype(context: RequestContext, scope: Scope, id: string, typeName: VolumeTypeName): Promise<Volume> {
      return updateAndShow(context, scope, id, (volume) => {
        requireData(volume);
        const errors =
          typeName === volume.typeName ? [] : typeErrors(offeredTypes(deps, scope), 'volume_type', typeName);
        requireNoErrors(errors);
        return { typeName };
      });
    },

    /** `action` is that of the path. @throws ClientError 400, 404 */
    async refuseInstance(scope: Scope, id: string, action: 'attach' | 'detach'): Promise<never> {
      await view(scope, id);
      const message = `instances are not supported, so there is nothing to ${action} a volume ${action === 'attach' ? 'to' : 'from'}`;
      throw invalidInput([{ path: 'instance_id', message }]);
    },

    ...tagsInRow(view, change, changeInRow),

    extend: (context: RequestContext, scope: Scope, id: string, size: number): Promise<TaskIds> =>
      change(context, scope, id, async (tx, volume) => {
        requireData(volume);
        if (size === volume.size) return { tasks: [] };
        requireGrowth(volume.size, size, 'volume');
        const response = await changeOnHost(tx, context, volume, 'extend_volume', { size, status: 'extending' });
        await quota.reserve(tx, volume, { volume_size: size - volume.size });
        return response;
      }),

    /** Restores the newest available snapshot. The response has no task; the volume names it until the revert has ended. */
    revert: (context: RequestContext, scope: Scope, id: string): Promise<void> =>
      change(context, scope, id, async (tx, volume) => {
        // A volume that lost its data can be restored; one that never had data has no snapshot.
        if (volume.deletedAt) throw onlyDeletable(volume);
        const newest = (await snapshots.ofVolume(tx, volume.id)).findLast(({ status }) => status === 'available');
        if (!newest) throw new ClientError('Conflict', `volume ${id} has no snapshot to revert to`);
        await changeOnHost(tx, context, volume, 'revert_volume', { revertTo: newest.id, status: 'reverting' });
      }),

    /** Deletes the snapshots with the volume, whose task waits for them. */
    delete: (context: RequestContext, scope: Scope, id: string): Promise<TaskIds> =>
      deletion(context, scope, id, async (tx, volume) => {
        await snapshots.deleteWithVolume(tx, volume.snapshots);
        const deletedAt = volume.deletedAt ?? clock.now();
        return changeOnHost(tx, context, volume, 'delete_volume', { status: 'deleting', deletedAt });
      }),
  };
}

/** The source of a new volume: none, or a snapshot, which is locked until the commit. */
async function sourceOf(snapshots: Snapshots, tx: Tx, scope: Scope, body: CreateVolume) {
  if (body.source === 'new-volume') {
    return { sourceSnapshotId: null, size: body.size, typeName: body.type_name ?? ('standard' as const) };
  }
  if (body.source === 'image') throw invalidInput([noImages]);
  const { snapshot, volume } = await snapshots.lockForCopy(tx, scope, body.snapshot_id);
  requireSizeOf(snapshot, body.size);
  return { sourceSnapshotId: snapshot.id, size: snapshot.size, typeName: body.type_name ?? volume.typeName };
}

function keyOf({ id, regionId }: Pick<VolumeRow, 'id' | 'regionId'>): ResourceKey {
  return { resource: 'volume', id, regionId };
}

function offeredTypes({ regions }: VolumesDeps, { regionId }: Scope): VolumeTypeName[] {
  return regions.get(regionId)!.volumeTypes;
}

function instanceErrors({ instance_id_to_attach_to: instance }: ValidFields<CreateVolume>): FieldError[] {
  return instance === undefined ? [] : [{ path: 'instance_id_to_attach_to', message: 'instances are not supported' }];
}

/** A volume from a snapshot has the type of the snapshot's volume by default, even if the region no longer offers it. */
function newTypeErrors(offered: VolumeTypeName[], { source, type_name }: ValidFields<CreateVolume>): FieldError[] {
  const typeName = type_name ?? (source === 'snapshot' ? null : 'standard');
  return typeName === null ? [] : typeErrors(offered, 'type_name', typeName);
}

function typeErrors(offered: VolumeTypeName[], path: string, typeName: VolumeTypeName): FieldError[] {
  if (offered.includes(typeName)) return [];
  return [{ path, message: `the region offers ${offered.join(', ') || 'no volumes'}` }];
}

const noImages = { path: 'source', message: 'must be new-volume or snapshot; images are not supported' };

/** @throws ClientError 409 when the volume was never created on the host, lost its data, or its deletion has begun */
function requireData(volume: VolumeRow): void {
  if (volume.observedSize === null || volume.deletedAt) throw onlyDeletable(volume);
  if (volume.status === 'error') {
    throw new ClientError(
      'Conflict',
      `volume ${volume.id} has lost its data; it can only be reverted to a snapshot or deleted`,
    );
  }
}

function onlyDeletable({ id, status }: VolumeRow): ClientError {
  return new ClientError('Conflict', `volume ${id} is in status ${status}; it can only be deleted`);
}

function toResponse(volume: VolumeView, regionName: string): Volume {
  return {
    id: volume.id,
    name: volume.name,
    attachments: [],
    bootable: false,
    created_at: withZone(volume.createdAt),
    creator_task_id: volume.creatorTaskId,
    is_root_volume: false,
    limiter_stats: null,
    metadata: toTagMap(volume.tags),
    metadata_detailed: toTagList(volume.tags),
    project_id: volume.projectId,
    region: regionName,
    region_id: volume.regionId,
    // While the volume grows, the size that the host has.
    size: volume.status === 'extending' ? volume.observedSize! : volume.size,
    snapshot_ids: volume.snapshotIds,
    status: volume.status,
    tags: toTagList(volume.tags),
    task_id: volume.taskId,
    updated_at: withZone(volume.updatedAt),
    volume_image_metadata: null,
    volume_type: volume.typeName,
  };
}
