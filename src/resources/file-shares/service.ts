/** The rules of file shares. Every change is one transaction: rows, quota, and the task with its job. */
import { randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { ClientError, invalidInput, notFound, resourceLocked } from '../../errors/catalogue.ts';
import type { FieldError } from '../../errors/catalogue.ts';
import type { Idempotency } from '../../idempotency/idempotency.ts';
import { canonicalNetwork } from '../../platform/network-address.ts';
import { withoutZone } from '../../platform/clock.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { Quota } from '../../quota/quota.ts';
import { mergeTags, newTags, presentTags, sameTags } from '../../tags/tags.ts';
import type { TagChange, Tags } from '../../tags/tags.ts';
import type { ResourceKey, Tasks } from '../../tasks/tasks.ts';
import type { Networks } from '../networks/service.ts';
import type { Regions } from '../regions/service.ts';
import { after, maxAccessRules, newAccessRule, presentAccessRule, unservable } from './access-rules.ts';
import { isLeaving } from './desired.ts';
import { volumeTypes } from './schema.ts';
import type {
  AccessRule,
  AccessRuleCollection,
  CreateAccessRule,
  CreateFileShare,
  FileShare,
  FileShareCollection,
  FileShareRequiredQuota,
  FileShareTypeName,
  ListAccessRules,
  ListFileShares,
  ShareSettingsInput,
  UpdateFileShare,
} from './schema.ts';
import * as store from './store.ts';
import type { FileShareRow, FileShareView } from './store.ts';

export interface FileSharesDeps {
  db: Db;
  clock: Clock;
  tasks: Tasks;
  quota: Quota;
  idempotency: Idempotency;
  networks: Networks;
  regions: Regions;
}

export type FileShares = ReturnType<typeof createFileShares>;
type TaskIds = { tasks: string[] };

export function createFileShares(deps: FileSharesDeps) {
  const { db, clock, tasks, quota, idempotency } = deps;

  /** The share, locked for this transaction and free of tasks. @throws ClientError 404, 409 */
  const lockForChange = async (tx: Tx, scope: Scope, id: string): Promise<FileShareRow> => {
    const share = await store.lock(tx, id, scope);
    if (!share) throw notFound('file share', id);
    const taskId = await tasks.lockedBy(tx, share.id);
    if (taskId) throw resourceLocked('file share', id, taskId);
    return share;
  };

  /** Writes a change that the host must follow, with the task that waits for it. */
  const changeOnHost = async (
    tx: Tx,
    context: RequestContext,
    share: FileShareRow,
    type: string,
    changes: Partial<FileShareRow>,
  ): Promise<TaskIds> => {
    const generation = share.generation + 1;
    await store.update(tx, share.id, { ...changes, generation });
    const { projectId } = share;
    return { tasks: [await tasks.enqueue(tx, context, { type, key: keyOf(share), projectId, generation })] };
  };

  const view = async (scope: Scope, id: string): Promise<FileShareView> => {
    const found = await store.view(db, scope, id);
    if (!found) throw notFound('file share', id);
    return found;
  };

  const update = (context: RequestContext, scope: Scope, id: string, body: UpdateFileShare): Promise<TaskIds> =>
    idempotency.auditedTransaction(db, context, async (tx) => {
      const share = await lockForChange(tx, scope, id);
      const rows = rowChanges(share, body);
      const settings = settingsChanges(share, body.share_settings ?? {});
      if (isEmpty(rows) && isEmpty(settings)) return { tasks: [] };
      if (!isEmpty(settings)) {
        requireOnHost(share);
        return changeOnHost(tx, context, share, 'update_sfs', { ...rows, ...settings, status: 'ensuring' });
      }
      await store.update(tx, id, rows);
      const { projectId, generation } = share;
      const done = { type: 'update_sfs', key: keyOf(share), projectId, generation };
      return { tasks: [await tasks.recordFinished(tx, context, done)] };
    });

  /** Tags of their own endpoints: changed at once, without a task. */
  const changeTags = (context: RequestContext, scope: Scope, id: string, change: TagChange) =>
    idempotency.auditedTransaction(db, context, async (tx) => {
      const share = await lockForChange(tx, scope, id);
      await store.update(tx, id, { tags: change(share.tags) });
    });

  return {
    async create(context: RequestContext, scope: Scope, body: CreateFileShare): Promise<TaskIds> {
      const typeName = typeOf(body);
      const access = 'access' in body ? (body.access ?? []) : [];
      checkCreate(deps.regions, scope, typeName, body.share_settings ?? {}, access);
      const tags = newTags(body.tags ?? body.metadata);
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const network = await deps.networks.forNewResource(tx, scope, 'network' in body ? body.network : undefined);
        const id = randomUUID();
        const taskId = await tasks.enqueue(tx, context, {
          type: 'create_sfs',
          key: { resource: 'file_share', id, regionId: scope.regionId },
          projectId: scope.projectId,
          generation: 1,
          createdResources: { file_shares: [id] },
        });
        const now = clock.now();
        await store.insert(tx, {
          id,
          clientId: scope.clientId,
          projectId: scope.projectId,
          regionId: scope.regionId,
          name: body.name,
          typeName,
          size: body.size,
          ...network,
          // The default of `root_squash` is true for a vast share and false for a standard one (docs/decisions/0013).
          rootSquash: body.share_settings?.root_squash ?? typeName === 'vast',
          allowedCharacters: body.share_settings?.allowed_characters ?? null,
          pathLength: body.share_settings?.path_length ?? null,
          tags,
          creatorTaskId: taskId,
          createdAt: now,
        });
        await store.insertAccessRules(
          tx,
          access.map((rule, i) => newAccessRule(id, rule, new Date(now.getTime() + i))),
        );
        await quota.reserve(tx, scope, { sfs_count: 1, sfs_size: body.size });
        return { tasks: [taskId] };
      });
    },

    async list(scope: Scope, filter: ListFileShares): Promise<FileShareCollection> {
      const { count, rows } = await store.list(db, scope, filter);
      return { count, results: rows.map((row) => present(row, scope.regionName)) };
    },

    async get(scope: Scope, id: string): Promise<FileShare> {
      return present(await view(scope, id), scope.regionName);
    },

    update,

    /** The deprecated form answers the share; a change of settings shows as its `task_id`. */
    async updateV1(context: RequestContext, scope: Scope, id: string, body: UpdateFileShare): Promise<FileShare> {
      await update(context, scope, id, body);
      return present(await view(scope, id), scope.regionName);
    },

    async delete(context: RequestContext, scope: Scope, id: string): Promise<TaskIds> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const share = await lockForChange(tx, scope, id);
        return changeOnHost(tx, context, share, 'delete_sfs', { status: 'deleting', deletedAt: clock.now() });
      });
    },

    async extend(context: RequestContext, scope: Scope, id: string, size: number): Promise<TaskIds> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const share = await lockForChange(tx, scope, id);
        requireOnHost(share);
        if (size === share.size) return { tasks: [] };
        if (size < share.size) {
          const message = `must be more than the ${share.size} GiB that the share has; a share cannot shrink`;
          throw invalidInput([{ path: 'size', message }]);
        }
        const answer = await changeOnHost(tx, context, share, 'extend_sfs', { size, status: 'extending' });
        await quota.reserve(tx, scope, { sfs_size: size - share.size });
        return answer;
      });
    },

    async createAccessRule(
      context: RequestContext,
      scope: Scope,
      id: string,
      body: CreateAccessRule,
    ): Promise<AccessRule> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const share = await lockForChange(tx, scope, id);
        requireOnHost(share);
        const rules = await store.accessRules(tx, id);
        const rule = newAccessRule(id, body, after(rules, clock.now()));
        const errors = unservable(rule.network, 'ip_address');
        if (errors.length > 0) throw invalidInput(errors);
        const same = rules.find((other) => other.network === rule.network);
        if (same && !isLeaving(same)) {
          throw new ClientError('Conflict', `file share ${id} has an access rule for ${rule.network}; delete it first`);
        }
        // A rule that was deleted a moment ago makes room at once: who changes rules deletes and creates them.
        if (same) await store.removeAccessRule(tx, same.id);
        if (!same && rules.length >= maxAccessRules) {
          throw new ClientError(
            'Conflict',
            `file share ${id} has ${maxAccessRules} access rules, and that is the most`,
          );
        }
        await store.insertAccessRules(tx, [rule]);
        await store.update(tx, id, { generation: share.generation + 1 });
        await tasks.requestReconcile(tx, keyOf(share), context.actor);
        return presentAccessRule(rule);
      });
    },

    async listAccessRules(scope: Scope, id: string, page: ListAccessRules): Promise<AccessRuleCollection> {
      await view(scope, id);
      const rules = await store.accessRules(db, id);
      const { limit = maxAccessRules, offset = 0 } = page;
      return { count: rules.length, results: rules.slice(offset, offset + limit).map(presentAccessRule) };
    },

    async deleteAccessRule(context: RequestContext, scope: Scope, id: string, ruleId: string): Promise<void> {
      await idempotency.auditedTransaction(db, context, async (tx) => {
        const share = await lockForChange(tx, scope, id);
        const rule = (await store.accessRules(tx, id)).find((candidate) => candidate.id === ruleId);
        if (!rule) throw notFound('access rule', ruleId);
        if (isLeaving(rule) && rule.state !== 'error') return;
        await store.denyAccessRule(tx, ruleId, clock.now());
        await store.update(tx, id, { generation: share.generation + 1 });
        await tasks.requestReconcile(tx, keyOf(share), context.actor);
      });
    },

    async checkLimits(scope: Scope, size: number): Promise<FileShareRequiredQuota> {
      const exceeded = await quota.exceeded(db, scope, { sfs_count: 1, sfs_size: size });
      return Object.fromEntries(
        exceeded.flatMap(({ kind, limit, usage, requested }) => [
          [`${kind}_limit`, limit],
          [`${kind}_usage`, usage],
          [`${kind}_requested`, requested],
        ]),
      );
    },

    tagsOf: async (scope: Scope, id: string): Promise<Tags> => (await view(scope, id)).tags,
    changeTags,
  };
}

function keyOf(share: FileShareRow): ResourceKey {
  return { resource: 'file_share', id: share.id, regionId: share.regionId };
}

function typeOf(body: CreateFileShare): FileShareTypeName {
  return body.type_name ?? (body.volume_type === 'vast_share_type' ? 'vast' : 'standard');
}

function checkCreate(
  regions: Regions,
  scope: Scope,
  typeName: FileShareTypeName,
  settings: ShareSettingsInput,
  access: CreateAccessRule[],
): void {
  const errors = vastOnlySettings(typeName, settings);
  const offered = regions.get(scope.regionId)!.fileShareTypes;
  if (!offered.includes(typeName)) {
    errors.push({ path: 'type_name', message: `the region offers ${offered.join(', ') || 'no file shares'}` });
  }
  const seen = new Set<string>();
  for (const [i, rule] of access.entries()) {
    const network = canonicalNetwork(rule.ip_address)!;
    errors.push(...unservable(network, `access.${i}.ip_address`));
    if (seen.has(network)) errors.push({ path: `access.${i}.ip_address`, message: `${network} has a rule already` });
    seen.add(network);
  }
  if (errors.length > 0) throw invalidInput(errors);
}

function vastOnlySettings(typeName: FileShareTypeName, settings: ShareSettingsInput): FieldError[] {
  if (typeName === 'vast') return [];
  return (['allowed_characters', 'path_length'] as const)
    .filter((name) => settings[name] !== undefined)
    .map((name) => ({ path: `share_settings.${name}`, message: 'can be set on vast shares only' }));
}

/** What a deletion left half done, or a creation never finished, can only be deleted. */
function requireOnHost(share: FileShareRow): void {
  if (share.observedSize !== null && !share.deletedAt) return;
  throw new ClientError('Conflict', `file share ${share.id} is in status ${share.status}; it can only be deleted`);
}

/** Changes that live in the row alone. */
function rowChanges(share: FileShareRow, body: UpdateFileShare): Partial<FileShareRow> {
  const tags = body.tags === undefined ? share.tags : mergeTags(share.tags, body.tags);
  return {
    ...(body.name !== undefined && body.name !== share.name && { name: body.name }),
    ...(!sameTags(tags, share.tags) && { tags }),
  };
}

function settingsChanges(share: FileShareRow, settings: ShareSettingsInput): Partial<FileShareRow> {
  const errors = vastOnlySettings(share.typeName, settings);
  if (errors.length > 0) throw invalidInput(errors);
  const { root_squash, allowed_characters, path_length } = settings;
  return {
    ...(root_squash !== undefined && root_squash !== share.rootSquash && { rootSquash: root_squash }),
    ...(allowed_characters &&
      allowed_characters !== share.allowedCharacters && { allowedCharacters: allowed_characters }),
    ...(path_length && path_length !== share.pathLength && { pathLength: path_length }),
  };
}

function isEmpty(changes: object): boolean {
  return Object.keys(changes).length === 0;
}

function present(share: FileShareView, regionName: string): FileShare {
  const vast = share.typeName === 'vast';
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
    share_network_name: vast ? null : share.networkName,
    project_id: share.projectId,
    region: regionName,
    region_id: share.regionId,
    protocol: 'NFS',
    share_settings: {
      type_name: share.typeName,
      ...((vast || share.rootSquash) && { root_squash: share.rootSquash }),
      ...(vast && { allowed_characters: share.allowedCharacters, path_length: share.pathLength, trash_access: false }),
    },
    // While it grows, what the host has so far.
    size: share.status === 'extending' ? share.observedSize! : share.size,
    status: share.status,
    tags: presentTags(share.tags),
    task_id: share.taskId,
    type_name: share.typeName,
    volume_type: volumeTypes[share.typeName],
  };
}
