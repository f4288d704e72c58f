/**
 * The rules of pools, their members and health monitors. A pool is a part of its load balancer: it changes under that
 * one's lock and generation, and a task of it locks the whole. Changes of pools wait for each other instead of failing.
 */
import { randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../../authz/actor.ts';
import { ClientError, invalidInput, notFound } from '../../../errors/catalogue.ts';
import type { Idempotency } from '../../../idempotency/idempotency.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Db, Tx } from '../../../platform/db.ts';
import { readInGroups } from '../../../platform/large-rows.ts';
import type { Groups } from '../../../platform/large-rows.ts';
import type { MemberRules } from '../../../platform/member-networks.ts';
import type { LoadBalancerChanges } from '../service.ts';
import { memberFaults, missingMonitorType, settingFaults } from './checks.ts';
import { changeSequence, newMember } from '../members/replace-members.ts';
import { createParts, poolChanges, withoutMonitor } from './parts.ts';
import { present, presentListed, presentMembers } from './present.ts';
import { referenceFaults, secretsWanted, subnetsWanted } from './references.ts';
import type { SecretsForUse } from './references.ts';
import type { CreatePool, LbPool, LbPoolCollection, ListMembers, ListPools, UpdatePool } from './schema.ts';
import type { Member, MemberCollection } from './schema.ts';
import { changedSettings, memberSettings, newSettings, settingsAfter } from './settings.ts';
import type { MemberSettings, PoolSettings } from './settings.ts';
import * as store from './store.ts';
import type { MemberRow, PoolRow } from './store.ts';
import { requireFree, targetOf } from './target.ts';

export interface LbPoolsDeps {
  db: Db;
  clock: Clock;
  idempotency: Idempotency;
  changes: LoadBalancerChanges;
  secrets: SecretsForUse;
  memberRules: MemberRules;
  /** Resolves as soon as the task ends, at the latest after `seconds`. */
  untilEnd(taskId: string, seconds: number): Promise<void>;
}

export type LbPools = ReturnType<typeof createLbPools>;
type TaskIds = { tasks: string[] };
type ListedPool = LbPoolCollection['results'][number];

/** A pool that is to be, with what its client decided. */
export interface NewPool {
  projectId: number;
  regionId: number;
  loadBalancerId: string;
  creatorTaskId: string;
  createdAt: Date;
  settings: PoolSettings;
  members: MemberSettings[];
}

/** Ids under the keys of a task's `created_resources`. */
export type CreatedPool = Record<'pools' | 'members' | 'healthmonitors', string[]>;

export function createLbPools(deps: LbPoolsDeps) {
  const { db, clock, idempotency, changes, secrets, memberRules } = deps;
  /** The pool, under the lock of its load balancer. @throws ClientError 404, 409 */
  const lock = async (tx: Tx, scope: Scope, id: string, besides?: readonly string[]) => {
    const found = await store.find(tx, scope, id);
    if (!found) throw notFound('pool', id);
    const loadBalancer = await changes.lock(tx, scope, found.loadBalancerId, besides);
    // Read again: who had the lock may have changed or removed it.
    const pool = await store.find(tx, scope, id);
    if (!pool) throw notFound('pool', id);
    return { loadBalancer, pool };
  };

  const lockForChange = async (tx: Tx, scope: Scope, id: string) => {
    const locked = await lock(tx, scope, id, poolChanges);
    if (locked.pool.deletedAt) {
      throw new ClientError('Conflict', `pool ${locked.pool.id} could not be deleted; delete it again`);
    }
    return locked;
  };

  const insert = async (tx: Tx, pool: NewPool): Promise<CreatedPool> => {
    const { settings, members, ...placed } = pool;
    const id = randomUUID();
    await store.insert(tx, {
      id,
      ...placed,
      ...settings,
      provisioningStatus: 'PENDING_CREATE',
      operatingStatus: 'OFFLINE',
      deletedAt: null,
    });
    const rows = members.map((member, position) => newMember(id, member, position));
    await store.writeMembers(tx, rows);
    const monitor = settings.healthMonitor;
    return { pools: [id], members: rows.map((row) => row.id), healthmonitors: monitor ? [monitor.id] : [] };
  };

  const create = (context: RequestContext, scope: Scope, body: CreatePool): Promise<TaskIds> =>
    idempotency.auditedTransaction(db, context, async (tx) => {
      const settings = newSettings(body);
      const members = (body.members ?? []).map(memberSettings);
      const target = await targetOf(tx, scope, body);
      const wanted = {
        secrets: secretsWanted(settings, null, ''),
        subnets: subnetsWanted(members, [], 'members'),
      };
      const faults = [
        ...target.faults,
        ...settingFaults(settings, target.protocols, ''),
        ...memberFaults(members, settings, 'members', memberRules(scope.regionId)),
        ...(await referenceFaults(tx, secrets, scope, wanted)),
      ];
      if (faults.length > 0) throw invalidInput(faults);
      const loadBalancer = await changes.lock(tx, scope, target.loadBalancerId);
      if (target.listener) await requireFree(tx, scope, target.listener.id);
      const taskId = randomUUID();
      const { id: loadBalancerId, projectId, regionId } = loadBalancer;
      const placed = { projectId, regionId, loadBalancerId, creatorTaskId: taskId, createdAt: clock.now() };
      const created = await insert(tx, { ...placed, settings, members });
      if (target.listener) await store.attach(tx, target.listener.id, created.pools[0]!);
      await changes.enqueue(tx, context, loadBalancer, {
        id: taskId,
        type: 'create_lbpool',
        createdResources: created,
      });
      return { tasks: [taskId] };
    });

  /** What a patch makes of the settings and members. @throws ClientError 400 with everything that is wrong */
  const planUpdate = async (tx: Tx, scope: Scope, pool: PoolRow, present: MemberRow[], body: UpdatePool) => {
    const settings = settingsAfter(pool, body);
    const members = body.members === undefined ? null : (body.members ?? []).map(memberSettings);
    const wanted = {
      secrets: secretsWanted(settings, pool, ''),
      subnets: subnetsWanted(members ?? [], present, 'members'),
    };
    const faults = [
      ...missingMonitorType(body, pool),
      ...settingFaults(settings, await store.listenerProtocols(tx, pool.id), ''),
      ...memberFaults(members ?? present, settings, 'members', members && memberRules(scope.regionId)),
      ...(await referenceFaults(tx, secrets, scope, wanted)),
    ];
    if (faults.length > 0) throw invalidInput(faults);
    return { changed: changedSettings(pool, settings), sequence: members && changeSequence(pool.id, present, members) };
  };

  const updatePool = (context: RequestContext, scope: Scope, id: string, body: UpdatePool): Promise<TaskIds> =>
    idempotency.auditedTransaction(db, context, async (tx) => {
      const { loadBalancer, pool } = await lockForChange(tx, scope, id);
      const present = await store.members(tx, pool.id);
      const { changed, sequence } = await planUpdate(tx, scope, pool, present, body);
      const isSame = Object.keys(changed).length === 0 && !sequence?.written.length && !sequence?.removed.length;
      // What failed is wanted and not in place: asking for it again is another try.
      if (isSame && pool.provisioningStatus !== 'ERROR') return { tasks: [] };
      await store.update(tx, pool.id, { ...changed, provisioningStatus: 'PENDING_UPDATE' });
      if (sequence) {
        await store.removeMembers(tx, sequence.removed);
        await store.writeMembers(tx, sequence.written);
      }
      // The Terraform provider takes the update of a member for failed when the task names no member.
      const members = sequence ? sequence.members.map((member) => member.id) : [];
      const createdResources = { pools: [pool.id], ...(members.length > 0 && { members }) };
      return { tasks: [await changes.enqueue(tx, context, loadBalancer, { type: 'update_lbpool', createdResources })] };
    });

  const deletePool = (context: RequestContext, scope: Scope, id: string): Promise<TaskIds> =>
    idempotency.auditedTransaction(db, context, async (tx) => {
      const { loadBalancer, pool } = await lock(tx, scope, id);
      await markDeleted(tx, pool.id);
      return { tasks: [await changes.enqueue(tx, context, loadBalancer, { type: 'delete_lbpool' })] };
    });

  const markDeleted = (tx: Tx, id: string) =>
    store.update(tx, id, { deletedAt: clock.now(), provisioningStatus: 'PENDING_DELETE' });

  return {
    create,
    update: updatePool,
    delete: deletePool,
    /** For a listener that comes with a pool, under the load balancer's lock. What is wrong was told before. */
    insert,
    /** For a listener that goes with its pool, under the load balancer's lock. */
    markDeleted,
    ...createParts({ ...deps, lockForChange }),

    async list(scope: Scope, filter: ListPools): Promise<{ count: number; results: Groups<ListedPool> }> {
      const { count, rows } = await store.list(db, scope, filter);
      const read = (ids: string[]) => store.viewsById(db, ids, filter.details);
      return { count, results: readInGroups(rows, read, presentListed) };
    },

    async get(scope: Scope, id: string): Promise<LbPool> {
      const pool = await store.view(db, scope, id);
      if (!pool) throw notFound('pool', id);
      return present(pool);
    },

    async getHealthMonitor(scope: Scope, id: string): Promise<NonNullable<LbPool['healthmonitor']>> {
      const pool = await store.view(db, scope, id);
      if (!pool) throw notFound('pool', id);
      const { healthmonitor } = present(pool);
      if (!healthmonitor) throw withoutMonitor(id);
      return healthmonitor;
    },

    async listMembers(scope: Scope, id: string, query: ListMembers): Promise<MemberCollection> {
      const pool = await store.view(db, scope, id);
      if (!pool) throw notFound('pool', id);
      return presentMembers(present(pool).members, query);
    },

    async getMember(scope: Scope, id: string, memberId: string): Promise<Member> {
      const pool = await store.view(db, scope, id);
      if (!pool) throw notFound('pool', id);
      const member = present(pool).members.find((each) => each.id === memberId.toLowerCase());
      if (!member) throw notFound('member', memberId);
      return member;
    },
  };
}
