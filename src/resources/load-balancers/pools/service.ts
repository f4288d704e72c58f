/** Rules of pools. A pool is part of its load balancer: it shares its lock, generation and tasks (locked-changes.ts). */
import { randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../../authz/actor.ts';
import { inUse, invalidInput, requireNoErrors } from '../../../errors/catalogue.ts';
import type { Tx } from '../../../platform/db.ts';
import { pageInGroups, type PageInGroups } from '../../../platform/large-rows.ts';
import type { MemberRules } from '../../../platform/member-networks.ts';
import { changedColumns, isEmpty, requireFound, type ServiceDeps, type TaskIds } from '../../service-kit.ts';
import { poolBodyErrors } from '../body-errors.ts';
import { createPartChanges, type LoadBalancerChanges, requireChangeable } from '../locked-changes.ts';
import { type MemberSettings, newMemberSettings } from '../members/normalize.ts';
import { newMember, replaceMembers } from '../members/replacement.ts';
import type { CreateMember } from '../members/schema.ts';
import { createMembers } from '../members/service.ts';
import * as memberStore from '../members/store.ts';
import { memberListErrors, memberSubnets } from '../members/validation.ts';
import { referenceErrors, type SecretsForUse } from '../references.ts';
import * as loadBalancerStore from '../store.ts';
import type { PoolRow } from '../table.ts';
import { lockAttachment, requireNoDefaultPool } from './attachment.ts';
import { createHealthMonitors } from './health-monitors.ts';
import { newPoolSettings, patchedPoolSettings, type PoolSettings } from './normalize.ts';
import { listedToResponse, toResponse } from './response.ts';
import type { CreatePool, LbPool, ListedPool, ListPools, UpdatePool } from './schema.ts';
import * as store from './store.ts';
import type { LockedPool } from './store.ts';
import { missingMonitorType, poolErrors, poolSecrets } from './validation.ts';

interface PoolsDeps extends Pick<ServiceDeps, 'db' | 'clock' | 'idempotency'> {
  changes: LoadBalancerChanges;
  secrets: SecretsForUse;
  memberRules: MemberRules;
  /** Resolves when the task ends, at the latest after `seconds`. */
  untilEnd(taskId: string, seconds: number): Promise<void>;
}

export type Pools = ReturnType<typeof createPools>;

/** Where a new listener or pool belongs. */
export type NewPart = Pick<PoolRow, 'projectId' | 'regionId' | 'loadBalancerId' | 'creatorTaskId' | 'createdAt'>;

/** Ids under the keys of a task's `created_resources`. */
export type CreatedPool = Record<'pools' | 'members' | 'healthmonitors', string[]>;

export function createPools(deps: PoolsDeps) {
  const { db, clock, idempotency, changes, secrets, memberRules } = deps;
  const parts = createPartChanges(deps, 'pool', store.lockPool);
  const change = parts.changeQueued;

  const view = async (scope: Scope, id: string): Promise<LbPool> =>
    toResponse(requireFound(await store.view(db, scope, id), 'pool', id));

  const insert = async (
    tx: Tx,
    { settings, members, ...place }: NewPart & { settings: PoolSettings; members: MemberSettings[] },
  ): Promise<CreatedPool> => {
    const id = randomUUID();
    await store.insert(tx, {
      id,
      ...place,
      ...settings,
      provisioningStatus: 'PENDING_CREATE',
      operatingStatus: 'OFFLINE',
      deletedAt: null,
    });
    const rows = members.map((member, position) => newMember({ ...settings, id }, member, position));
    await memberStore.write(tx, rows);
    const monitor = settings.healthMonitor;
    return { pools: [id], members: rows.map((row) => row.id), healthmonitors: monitor ? [monitor.id] : [] };
  };

  const create = (context: RequestContext, scope: Scope, body: CreatePool): Promise<TaskIds> =>
    idempotency.auditedTransaction(db, context, async (tx) => {
      const settings = newPoolSettings(body);
      const members = (body.members ?? []).map(newMemberSettings);
      const { loadBalancer, listener, errors } = await lockAttachment(tx, scope, body);
      errors.push(
        ...poolErrors(settings, listener ? [listener.protocol] : [], loadBalancer?.vipAddress ?? store.anyIpv4, ''),
        ...memberListErrors(members, settings, 'members.', memberRules(scope.regionId)),
        ...(await referenceErrors(tx, secrets, scope, {
          secrets: poolSecrets(settings, null, ''),
          subnets: memberSubnets(members, [], 'members.'),
        })),
      );
      if (!loadBalancer || errors.length > 0) throw invalidInput(errors);
      requireChangeable(loadBalancer);
      if (listener) await requireNoDefaultPool(tx, scope, listener.id);
      const creatorTaskId = randomUUID();
      const { projectId, regionId, id: loadBalancerId } = loadBalancer;
      const place = { projectId, regionId, loadBalancerId, creatorTaskId, createdAt: clock.now() };
      const createdResources = await insert(tx, { ...place, settings, members });
      await loadBalancerStore.limitPools(tx, loadBalancerId);
      if (members.length > 0) await loadBalancerStore.limitMembers(tx, loadBalancerId);
      if (listener) await store.attach(tx, listener.id, createdResources.pools[0]!);
      const data = { pool_id: createdResources.pools[0]! };
      const task = { id: creatorTaskId, type: 'create_lbpool', createdResources, data };
      return changes.enqueue(tx, context, loadBalancer, task);
    });

  /** The changes that a patch makes. `prefix`: of the paths of members in the request. @throws ClientError 400 with all errors */
  const planUpdate = async (tx: Tx, scope: Scope, pool: LockedPool, body: UpdatePool, prefix: string) => {
    const { members: current, listenerProtocols } = pool;
    const settings = patchedPoolSettings(pool, body);
    const members = body.members === undefined ? null : (body.members ?? []).map(newMemberSettings);
    requireNoErrors([
      ...missingMonitorType(body, pool),
      ...poolErrors(settings, listenerProtocols, await store.addressFor(tx, pool.loadBalancerId, settings), '', pool),
      ...memberListErrors(members ?? current, settings, prefix, members && memberRules(scope.regionId)),
      ...(await referenceErrors(tx, secrets, scope, {
        secrets: poolSecrets(settings, pool, ''),
        subnets: memberSubnets(members ?? [], current, prefix),
      })),
    ]);
    return {
      changed: changedColumns<PoolSettings, PoolSettings>(pool, settings),
      replacement: members && replaceMembers({ ...settings, id: pool.id }, current, members),
    };
  };

  const update = (
    context: RequestContext,
    scope: Scope,
    id: string,
    body: UpdatePool,
    prefix = 'members.',
  ): Promise<TaskIds> =>
    change(context, scope, id, async (tx, pool) => {
      const { changed, replacement } = await planUpdate(tx, scope, pool, body, prefix);
      const isSame = isEmpty(changed) && !replacement?.written.length && !replacement?.removed.length;
      // After a failure the same update is a retry.
      if (isSame && pool.provisioningStatus !== 'ERROR') return null;
      await store.update(tx, pool.id, { ...changed, provisioningStatus: 'PENDING_UPDATE' });
      if (replacement) {
        await memberStore.remove(tx, replacement.removed);
        await memberStore.write(tx, replacement.written);
        const isLarger = replacement.members.length > pool.members.length;
        if (isLarger) await loadBalancerStore.limitMembers(tx, pool.loadBalancerId);
      }
      // The Terraform provider reports a failed update of a member if the task names no member.
      const members = (replacement?.members ?? []).map((member) => member.id);
      return {
        type: 'patch_lbpool',
        createdResources: { pools: [pool.id], ...(members.length > 0 && { members }) },
      };
    });

  const markDeleted = (tx: Tx, id: string) =>
    store.update(tx, id, { deletedAt: clock.now(), provisioningStatus: 'PENDING_DELETE' });

  return {
    create,
    ...poolBodyErrors(memberRules),
    update: (context: RequestContext, scope: Scope, id: string, body: UpdatePool) => update(context, scope, id, body),
    replaceMembers: (context: RequestContext, scope: Scope, id: string, members: CreateMember[]) =>
      update(context, scope, id, { members }, ''),
    /** For the create of a load balancer. The caller has validated the pool and holds the lock. */
    insert,
    /** For the deletion of a listener with its pool. The caller holds the lock. */
    markDeleted,
    ...createMembers({ secrets, memberRules, change, view }),
    ...createHealthMonitors({ untilEnd: deps.untilEnd, change, view }),

    delete: (context: RequestContext, scope: Scope, id: string): Promise<TaskIds> =>
      parts.remove(context, scope, id, async (tx, pool) => {
        if (pool.uses.length > 0) throw inUse('pool', pool.id, pool.uses);
        await markDeleted(tx, pool.id);
        return { type: 'delete_lbpool' };
      }),

    async list(scope: Scope, filter: ListPools): Promise<PageInGroups<ListedPool>> {
      const read = (ids: string[]) => store.viewsById(db, ids, filter.details);
      return pageInGroups(await store.list(db, scope, filter), read, listedToResponse);
    },

    get: view,
  };
}
