/** The rules of what a pool is made of: single members, and the health monitor. */
import { isDeepStrictEqual } from 'node:util';
import { whileWaiting } from '../../../authz/actor.ts';
import type { RequestContext, Scope } from '../../../authz/actor.ts';
import { ClientError, invalidInput, notFound } from '../../../errors/catalogue.ts';
import type { Idempotency } from '../../../idempotency/idempotency.ts';
import type { Db, Tx } from '../../../platform/db.ts';
import type { MemberRules } from '../../../platform/member-networks.ts';
import type { LoadBalancerChanges } from '../service.ts';
import { backupFaults, endpointFaults, monitorFaults } from './checks.ts';
import { endpointOf, newMember } from '../members/replace-members.ts';
import { referenceFaults } from './references.ts';
import type { SecretsForUse } from './references.ts';
import { maxMembers } from './schema.ts';
import type { CreateHealthMonitor, CreateMember, PatchHealthMonitor, UpdateMember } from './schema.ts';
import { memberAfter, memberSettings, newMonitor } from './settings.ts';
import * as store from './store.ts';
import type { MemberRow, PoolRow } from './store.ts';

type LoadBalancer = Awaited<ReturnType<LoadBalancerChanges['lock']>>;

export interface PartsDeps {
  db: Db;
  idempotency: Idempotency;
  changes: LoadBalancerChanges;
  secrets: SecretsForUse;
  memberRules: MemberRules;
  untilEnd(taskId: string, seconds: number): Promise<void>;
  /** The pool under its load balancer's lock. @throws ClientError 404, 409 */
  lockForChange(tx: Tx, scope: Scope, poolId: string): Promise<{ loadBalancer: LoadBalancer; pool: PoolRow }>;
}

type TaskIds = { tasks: string[] };

/** Tasks of these types let each other in: they are done in the order in which they were accepted. */
export const poolChanges = [
  'update_lbpool',
  'create_lbmember',
  'update_lbmember',
  'delete_lbmember',
  'create_lbpool_health_monitor',
  'update_lbpool_health_monitor',
];

/** How long an answer without a task waits for the host. */
const patienceSeconds = 5;

const pending = { provisioningStatus: 'PENDING_UPDATE' as const };

async function findMember(tx: Tx, pool: PoolRow, id: string): Promise<MemberRow> {
  const member = (await store.members(tx, pool.id)).find((each) => each.id === id.toLowerCase());
  if (!member) throw notFound('member', id);
  return member;
}

export function withoutMonitor(poolId: string): ClientError {
  return new ClientError('NotFound', `pool ${poolId} has no health monitor`);
}

export function createParts(deps: PartsDeps) {
  const { db, idempotency, changes, secrets, memberRules, untilEnd, lockForChange } = deps;

  /** The address and port of a member stay, and were judged when it came. */
  const monitorEndpointFaults = (settings: MemberRow, body: UpdateMember, scope: Scope) => {
    if (body.monitor_address === undefined && body.monitor_port === undefined) return [];
    const faults = endpointFaults(settings, memberRules(scope.regionId), '');
    return faults.filter(({ path }) => path.startsWith('monitor_'));
  };

  return {
    async createMember(context: RequestContext, scope: Scope, poolId: string, body: CreateMember): Promise<TaskIds> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const { loadBalancer, pool } = await lockForChange(tx, scope, poolId);
        const settings = memberSettings(body);
        const subnets = settings.subnetId === null ? [] : [{ id: settings.subnetId, path: 'subnet_id' }];
        const faults = [
          ...backupFaults(settings, pool, ''),
          ...endpointFaults(settings, memberRules(scope.regionId), ''),
          ...(await referenceFaults(tx, secrets, scope, { secrets: [], subnets })),
        ];
        if (faults.length > 0) throw invalidInput(faults);
        const present = await store.members(tx, pool.id);
        const same = present.find((member) => endpointOf(member) === endpointOf(settings));
        if (same) {
          const where = `${same.address} port ${same.protocolPort}`;
          throw new ClientError('Conflict', `pool ${pool.id} has a member at ${where} already: ${same.id}`);
        }
        if (present.length >= maxMembers) {
          throw new ClientError('Conflict', `pool ${pool.id} has ${maxMembers} members, and that is the most`);
        }
        const member = newMember(pool.id, settings, (present.at(-1)?.position ?? -1) + 1);
        await store.writeMembers(tx, [member]);
        await store.update(tx, pool.id, pending);
        const task = { type: 'create_lbmember', createdResources: { members: [member.id] } };
        return { tasks: [await changes.enqueue(tx, context, loadBalancer, task)] };
      });
    },

    async updateMember(
      context: RequestContext,
      scope: Scope,
      poolId: string,
      memberId: string,
      body: UpdateMember,
    ): Promise<TaskIds> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const { loadBalancer, pool } = await lockForChange(tx, scope, poolId);
        const member = await findMember(tx, pool, memberId);
        const settings = memberAfter(member, body);
        const faults = [...backupFaults(settings, pool, ''), ...monitorEndpointFaults(settings, body, scope)];
        if (faults.length > 0) throw invalidInput(faults);
        // What failed is wanted and not in place: asking for it again is another try.
        if (isDeepStrictEqual(settings, member) && pool.provisioningStatus !== 'ERROR') return { tasks: [] };
        await store.writeMembers(tx, [settings]);
        await store.update(tx, pool.id, pending);
        const task = { type: 'update_lbmember', createdResources: { members: [member.id] } };
        return { tasks: [await changes.enqueue(tx, context, loadBalancer, task)] };
      });
    },

    async deleteMember(context: RequestContext, scope: Scope, poolId: string, memberId: string): Promise<TaskIds> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const { loadBalancer, pool } = await lockForChange(tx, scope, poolId);
        const member = await findMember(tx, pool, memberId);
        await store.removeMembers(tx, [member.id]);
        await store.update(tx, pool.id, pending);
        return { tasks: [await changes.enqueue(tx, context, loadBalancer, { type: 'delete_lbmember' })] };
      });
    },

    /** Creates it, or puts it in the place of the one there is: README.md says why that is no conflict. */
    async createHealthMonitor(
      context: RequestContext,
      scope: Scope,
      poolId: string,
      body: CreateHealthMonitor,
    ): Promise<TaskIds> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const { loadBalancer, pool } = await lockForChange(tx, scope, poolId);
        const healthMonitor = newMonitor(body, pool.healthMonitor);
        const faults = monitorFaults(healthMonitor, pool.protocol, '');
        if (faults.length > 0) throw invalidInput(faults);
        await store.update(tx, pool.id, { healthMonitor, ...pending });
        const createdResources = { healthmonitors: [healthMonitor.id] };
        const task = { type: 'create_lbpool_health_monitor', createdResources };
        return { tasks: [await changes.enqueue(tx, context, loadBalancer, task)] };
      });
    },

    async updateHealthMonitor(
      context: RequestContext,
      scope: Scope,
      poolId: string,
      body: PatchHealthMonitor,
    ): Promise<TaskIds> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const { loadBalancer, pool } = await lockForChange(tx, scope, poolId);
        const present = pool.healthMonitor;
        if (!present) throw withoutMonitor(pool.id);
        const healthMonitor = newMonitor({ ...present, ...body }, present);
        const faults = monitorFaults(healthMonitor, pool.protocol, '');
        if (faults.length > 0) throw invalidInput(faults);
        if (isDeepStrictEqual(healthMonitor, present) && pool.provisioningStatus !== 'ERROR') return { tasks: [] };
        await store.update(tx, pool.id, { healthMonitor, ...pending });
        const createdResources = { healthmonitors: [healthMonitor.id] };
        const task = { type: 'update_lbpool_health_monitor', createdResources };
        return { tasks: [await changes.enqueue(tx, context, loadBalancer, task)] };
      });
    },

    /**
     * An update of the pool. The answer names no task to wait for, so it comes when the host has done it: clients send the
     * next change at once, which could be one that finds the lock. A host that takes its time is not waited for.
     */
    async deleteHealthMonitor(context: RequestContext, scope: Scope, poolId: string): Promise<void> {
      const taskId = await idempotency.auditedTransaction(db, context, async (tx) => {
        const { loadBalancer, pool } = await lockForChange(tx, scope, poolId);
        if (!pool.healthMonitor) throw withoutMonitor(pool.id);
        await store.update(tx, pool.id, { healthMonitor: null, ...pending });
        return changes.enqueue(tx, context, loadBalancer, { type: 'update_lbpool' });
      });
      await whileWaiting(context, () => untilEnd(taskId, patienceSeconds));
    },
  };
}
