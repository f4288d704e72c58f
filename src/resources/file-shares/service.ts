/** The rules of file shares. Every change is one transaction: rows, quota, and the task with its job. */
import { randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { ClientError, type FieldError } from '../../errors/catalogue.ts';
import type { IsInvalid, ValidFields } from '../../errors/valid-fields.ts';
import { withoutZone } from '../../platform/clock.ts';
import type { Tx } from '../../platform/db.ts';
import type { PageOfItems } from '../../platform/large-rows.ts';
import { errorsOfNewTags, newTags, type Tags, toTagList } from '../../tags/tags.ts';
import type { Networks } from '../networks/service.ts';
import type { RegionFacts, Regions } from '../regions/service.ts';
import {
  changedColumns,
  changesInRow,
  changesOnHost,
  changesUnderLock,
  type Collection,
  isEmpty,
  patchedTags,
  requireFound,
  requireGrowth,
  type ServiceDeps,
  sizeErrors,
  tagsInRow,
  type TaskIds,
  toCollection,
  toQuotaFields,
  toTaggedPage,
  withErrors,
} from '../service-kit.ts';
import { accessErrors, createAccessRules, keyOf, newAccessRules, requireOnHost } from './access-rules.ts';
import {
  type CreateAccessRule,
  type CreateFileShare,
  type FileShare,
  type FileShareRequiredQuota,
  type FileShareTypeName,
  type FileShareUsage,
  type ListFileShares,
  type ListFileShareUsage,
  type ShareSettingsInput,
  type UpdateFileShare,
  volumeTypes,
} from './schema.ts';
import * as store from './store.ts';
import type { FileShareRow, FileShareView } from './store.ts';

interface FileSharesDeps extends ServiceDeps {
  networks: Networks;
  regions: Regions;
}

export type FileShares = ReturnType<typeof createFileShares>;

export function createFileShares(deps: FileSharesDeps) {
  const { db, clock, tasks, quota, idempotency } = deps;

  const change = changesUnderLock(deps, 'file share', store.lock);
  const changeOnHost = changesOnHost<FileShareRow>(tasks, keyOf, store.update);
  const changeInRow = changesInRow<FileShareRow>(store.update);

  const view = async (scope: Scope, id: string): Promise<FileShareView> =>
    requireFound(await store.view(db, scope, id), 'file share', id);

  const update = (
    context: RequestContext,
    scope: Scope,
    id: string,
    body: UpdateFileShare,
    errorsOfSize = sizeErrorsV3,
  ): Promise<TaskIds> =>
    change(context, scope, id, async (tx, share) => {
      const { share_settings: settings = {}, tags, size: _, ...fields } = body;
      const errors = [...settingsErrors(share.typeName, settings), ...errorsOfSize(share.size, body)];
      const rowChanges = changedColumns(share, {
        ...fields,
        tags: patchedTags(share.tags, tags, errors),
        // Also a default that is set explicitly: it changes nothing on the host.
        rootSquash: settings.root_squash,
      });
      const hostChanges = settingsChanges(share, settings);
      // After a failure the same update is a retry.
      const isRetry = share.status === 'error' && share.observedSize !== null && !isEmpty(settings);
      if (!isEmpty(hostChanges) || isRetry) {
        requireOnHost(share);
        return changeOnHost(tx, context, share, 'update_sfs', { ...rowChanges, ...hostChanges, status: 'ensuring' });
      }
      if (!(await changeInRow(tx, share, rowChanges))) return { tasks: [] };
      const { projectId, generation } = share;
      const task = { type: 'update_sfs', key: keyOf(share), projectId, generation };
      return { tasks: [await tasks.recordFinished(tx, context, task)] };
    });

  return {
    ...createAccessRules({ ...deps, change, requireShare: view }),
    bodyErrors: createBodyErrors(deps.regions),

    async create(context: RequestContext, scope: Scope, body: CreateFileShare): Promise<TaskIds> {
      const { clientId, projectId, regionId } = scope;
      const typeName = typeOf(body);
      const settings = body.share_settings ?? {};
      const access = 'access' in body ? (body.access ?? []) : [];
      const { tags, errors } = newTags(body);
      errors.push(
        ...settingsErrors(typeName, settings),
        ...typeErrors(deps.regions, regionId, typeName),
        ...accessErrors(access),
      );
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const given = 'network' in body ? body.network : undefined;
        const network = await withErrors(errors, deps.networks.forNewResource(scope, given));
        const id = randomUUID();
        const creatorTaskId = await tasks.enqueue(tx, context, {
          type: 'create_sfs',
          key: keyOf({ id, regionId }),
          projectId,
          generation: 1,
          createdResources: { file_shares: [id] },
        });
        const createdAt = clock.now();
        const placed = {
          clientId,
          projectId,
          regionId,
          ...network,
          ...(await placeExport(tx, deps.regions.get(regionId)!)),
        };
        await store.insert(tx, { id, ...placed, ...newColumns(body, tags), creatorTaskId, createdAt });
        await store.insertAccessRules(tx, newAccessRules(id, access, createdAt));
        await quota.reserve(tx, scope, { sfs_count: 1, sfs_size: body.size });
        return { tasks: [creatorTaskId] };
      });
    },

    async list(scope: Scope, filter: ListFileShares): Promise<PageOfItems<FileShare>> {
      return toTaggedPage(await store.list(db, scope, filter), toResponse, scope.regionName);
    },

    async usage(scope: Scope, filter: ListFileShareUsage): Promise<Collection<FileShareUsage>> {
      return toCollection(await store.listUsage(db, scope, filter), toUsage);
    },

    async get(scope: Scope, id: string): Promise<FileShare> {
      return toResponse(await view(scope, id), scope.regionName);
    },

    update,

    /** The deprecated form returns the share; a change on the host shows as its `task_id`. */
    async updateV1(context: RequestContext, scope: Scope, id: string, body: UpdateFileShare): Promise<FileShare> {
      await update(context, scope, id, body, (current, { size }) => sizeErrors(current, size));
      return toResponse(await view(scope, id), scope.regionName);
    },

    delete: (context: RequestContext, scope: Scope, id: string): Promise<TaskIds> =>
      change(context, scope, id, (tx, share) =>
        changeOnHost(tx, context, share, 'delete_sfs', { status: 'deleting', deletedAt: clock.now() }),
      ),

    extend: (context: RequestContext, scope: Scope, id: string, size: number): Promise<TaskIds> =>
      change(context, scope, id, async (tx, share) => {
        requireOnHost(share);
        if (size === share.size) return { tasks: [] };
        requireGrowth(share.size, size, 'share');
        const response = await changeOnHost(tx, context, share, 'extend_sfs', { size, status: 'extending' });
        await quota.reserve(tx, scope, { sfs_size: size - share.size });
        return response;
      }),

    async checkLimits(scope: Scope, size: number): Promise<FileShareRequiredQuota> {
      return toQuotaFields(await quota.exceeded(db, scope, { sfs_count: 1, sfs_size: size }));
    },

    ...tagsInRow(view, change, changeInRow),
  };
}

function toUsage({ fileShareId, usedBytes, totalBytes }: store.Usage): FileShareUsage {
  return { file_share_id: fileShareId, used_bytes: usedBytes, total_bytes: totalBytes };
}

/** In a region of several hosts: the NFS group and export id of a new share. @throws ClientError 409 */
async function placeExport(
  tx: Tx,
  { id, name, nfsAddresses }: RegionFacts,
): Promise<Pick<FileShareRow, 'nfsGroup' | 'exportId'>> {
  if (nfsAddresses === null) return { nfsGroup: null, exportId: null };
  const place = await store.placeExport(tx, id, nfsAddresses);
  if (!place) throw noRoom(name, nfsAddresses.length);
  return place;
}

function noRoom(region: string, addresses: number): ClientError {
  const most = addresses * store.exportsOfGroup;
  return new ClientError(
    'QuotaExceeded',
    `the region ${region} holds its ${most} file shares (${store.exportsOfGroup} for each of its ${addresses} NFS addresses); ` +
      'the operator can add addresses',
    { errors: [{ path: 'region_id', message: `the region holds at most ${most} file shares` }] },
  );
}

/** The defaults that clients of the interface expect. */
const squashesRootByDefault: Record<FileShareTypeName, boolean> = { standard: false, vast: true };

function typeOf(body: Pick<CreateFileShare, 'type_name' | 'volume_type'>): FileShareTypeName {
  return body.type_name ?? (body.volume_type === 'vast_share_type' ? 'vast' : 'standard');
}

/** Returns the errors of an invalid body. A rule that needs an invalid field is skipped. */
const createBodyErrors =
  (regions: Regions) =>
  (body: ValidFields<CreateFileShare>, isInvalid: IsInvalid, { region_id }: { region_id?: number }): FieldError[] => {
    const access = ('access' in body && body.access) || [];
    const isWhole = access.every((rule) => rule.ip_address !== undefined);
    const isTyped = !isInvalid('type_name') && !isInvalid('volume_type');
    const typeName = typeOf(body);
    return [
      ...errorsOfNewTags(body, isInvalid),
      ...(isTyped ? settingsErrors(typeName, body.share_settings ?? {}) : []),
      ...(isTyped ? typeErrors(regions, region_id, typeName) : []),
      ...(isWhole ? accessErrors(access as CreateAccessRule[]) : []),
    ];
  };

/** None for an unknown region, which is an error of the path. */
function typeErrors(regions: Regions, regionId: number | undefined, typeName: FileShareTypeName): FieldError[] {
  const region = regions.get(regionId);
  if (!region || region.fileShareTypes.includes(typeName)) return [];
  return [{ path: 'type_name', message: `the region offers ${region.fileShareTypes.join(', ') || 'no file shares'}` }];
}

function settingsErrors(typeName: FileShareTypeName, settings: ShareSettingsInput): FieldError[] {
  if (typeName === 'vast') return [];
  return (['allowed_characters', 'path_length', 'trash_access'] as const)
    .filter((name) => settings[name] !== undefined)
    .map((name) => ({ path: `share_settings.${name}`, message: 'is supported by vast shares only' }));
}

/** Version 2 of the Terraform provider sends every changed field, the size too, and then extends the share. */
function sizeErrorsV3(current: number, { size, ...changes }: UpdateFileShare): FieldError[] {
  const isExtendedNext = !isEmpty(changes) && Number(size) > current;
  return isExtendedNext ? [] : sizeErrors(current, size);
}

/** The columns that the body of a new share sets. */
function newColumns(body: CreateFileShare, tags: Tags) {
  const typeName = typeOf(body);
  const settings = body.share_settings ?? {};
  return {
    name: body.name,
    typeName,
    size: body.size,
    tags,
    rootSquash: settings.root_squash ?? (typeName === 'vast' ? squashesRootByDefault.vast : null),
    allowedCharacters: settings.allowed_characters ?? null,
    pathLength: settings.path_length ?? null,
  };
}

/** Setting a default explicitly changes nothing on the host. */
function settingsChanges(share: FileShareRow, settings: ShareSettingsInput): Partial<FileShareRow> {
  const row = { ...share, rootSquash: share.rootSquash ?? squashesRootByDefault[share.typeName] };
  return changedColumns(row, {
    rootSquash: settings.root_squash,
    allowedCharacters: settings.allowed_characters,
    pathLength: settings.path_length,
  });
}

function toResponse(share: FileShareView, regionName: string): FileShare {
  const isVast = share.typeName === 'vast';
  const network = {
    network_id: share.networkId,
    network_name: share.networkName,
    subnet_id: share.subnetId,
    subnet_name: share.subnetName,
  };
  return {
    id: share.id,
    name: share.name,
    connection_point: share.connectionPoint,
    created_at: withoutZone(share.createdAt),
    creator_task_id: share.creatorTaskId,
    network,
    ...network,
    share_network_name: isVast ? null : share.networkName,
    project_id: share.projectId,
    region: regionName,
    region_id: share.regionId,
    protocol: 'NFS',
    share_settings: {
      type_name: share.typeName,
      ...(share.rootSquash !== null && { root_squash: share.rootSquash }),
      ...(isVast && {
        allowed_characters: share.allowedCharacters,
        path_length: share.pathLength,
        trash_access: false,
      }),
    },
    // While the share grows, the size that the host has.
    size: share.status === 'extending' ? share.observedSize! : share.size,
    status: share.status,
    tags: toTagList(share.tags),
    task_id: share.taskId,
    type_name: share.typeName,
    volume_type: volumeTypes[share.typeName],
  };
}
