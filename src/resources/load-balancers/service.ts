/** The rules of load balancers. A load balancer is one thing with its listeners and pools: one lock, one job. */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { ClientError, invalidInput, notFound, resourceLocked } from '../../errors/catalogue.ts';
import type { FieldError } from '../../errors/catalogue.ts';
import type { Idempotency } from '../../idempotency/idempotency.ts';
import { withZone } from '../../platform/clock.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Db, Tx } from '../../platform/db.ts';
import { readInGroups } from '../../platform/large-rows.ts';
import type { Groups } from '../../platform/large-rows.ts';
import { lowestFreeAddress } from '../../platform/network-address.ts';
import type { Quota } from '../../quota/quota.ts';
import { tagFilterOf } from '../../tags/filter.ts';
import { mergeTags, newTags, presentTags, sameTags } from '../../tags/tags.ts';
import type { NewTask, ResourceKey, Tasks } from '../../tasks/tasks.ts';
import type { NestedListener } from './listeners/schema.ts';
import type { Networks } from '../networks/service.ts';
import type { Regions } from '../regions/service.ts';
import { loggingOf, newLoadBalancer, notOffered } from './creation.ts';
import { createLoadBalancerMetadata } from './metadata/service.ts';
import { flavors } from './schema.ts';
import type {
  CheckLoadBalancerLimits,
  CreateLoadBalancer,
  FlavorName,
  ListLoadBalancers,
  LoadBalancer,
  LoadBalancerQuota,
  UpdateLoadBalancer,
} from './schema.ts';
import { createLoadBalancerStatuses } from './status/service.ts';
import * as store from './store.ts';
import type { LoadBalancerRow, LoadBalancerView } from './store.ts';
import { createLoadBalancerTraffic } from './traffic/service.ts';

/** How anything of a load balancer changes: itself, a listener, a pool or a member. */
export interface LoadBalancerChanges {
  /**
   * The load balancer, locked for this transaction and free of tasks; tasks of the types `besides` do not count.
   * @throws ClientError 404, 409
   */
  lock(tx: Tx, scope: Scope, id: string, besides?: readonly string[]): Promise<LoadBalancerRow>;
  /** Writes that the host must follow, with the task that waits for it. Returns the task's id. */
  enqueue(
    tx: Tx,
    context: RequestContext,
    loadBalancer: LoadBalancerRow,
    task: Pick<NewTask, 'type' | 'createdResources' | 'id'>,
    changes?: Partial<LoadBalancerRow>,
  ): Promise<string>;
}

export function createLoadBalancerChanges({ clock, tasks }: { clock: Clock; tasks: Tasks }): LoadBalancerChanges {
  return {
    async lock(tx, scope, id, besides) {
      const loadBalancer = await store.lock(tx, id, scope);
      if (!loadBalancer) throw notFound('load balancer', id);
      // As the row writes it: a client may write it in capitals.
      const taskId = await tasks.lockedBy(tx, loadBalancer.id, besides);
      if (taskId) throw resourceLocked('load balancer', id, taskId);
      if (loadBalancer.deletedAt) {
        throw new ClientError('Conflict', `load balancer ${id} could not be deleted; delete it again`);
      }
      return loadBalancer;
    },

    async enqueue(tx, context, loadBalancer, task, changes = {}) {
      const generation = loadBalancer.generation + 1;
      await store.update(tx, loadBalancer.id, {
        provisioningStatus: 'PENDING_UPDATE',
        updatedAt: clock.now(),
        ...changes,
        generation,
      });
      return tasks.enqueue(tx, context, {
        ...task,
        key: keyOf(loadBalancer),
        projectId: loadBalancer.projectId,
        generation,
      });
    },
  };
}

export function keyOf(loadBalancer: Pick<LoadBalancerRow, 'id' | 'regionId'>): ResourceKey {
  return { resource: 'load_balancer', id: loadBalancer.id, regionId: loadBalancer.regionId };
}

/** Ids of what was made inside a new load balancer. */
export interface CreatedParts {
  listeners: string[];
  pools: string[];
  members: string[];
  healthmonitors: string[];
}

/** Listeners inside a new load balancer, with their pools: made by those who know their rules. */
export interface NestedParts {
  /** What is wrong with them by themselves; paths begin with `listeners`. */
  checkNested(scope: Scope, listeners: NestedListener[]): FieldError[];
  /** @throws ClientError 400, 409 */
  insertNested(
    tx: Tx,
    parts: { scope: Scope; loadBalancerId: string; creatorTaskId: string; now: Date; listeners: NestedListener[] },
  ): Promise<CreatedParts>;
}

export interface LoadBalancersDeps extends NestedParts {
  db: Db;
  clock: Clock;
  tasks: Tasks;
  quota: Quota;
  idempotency: Idempotency;
  networks: Networks;
  regions: Regions;
  changes: LoadBalancerChanges;
}

export type LoadBalancers = ReturnType<typeof createLoadBalancers>;
type TaskIds = { tasks: string[] };

export function createLoadBalancers(deps: LoadBalancersDeps) {
  const { db, clock, tasks, quota, idempotency, changes } = deps;

  const view = async (scope: Scope, id: string, showStats?: boolean): Promise<LoadBalancerView> => {
    const found = await store.view(db, scope, id, showStats);
    if (!found) throw notFound('load balancer', id);
    return found;
  };

  /** Changes that live in the row alone are done with this transaction, and so is their task. */
  const record = async (
    tx: Tx,
    context: RequestContext,
    loadBalancer: LoadBalancerRow,
    type: string,
    written: Partial<LoadBalancerRow>,
  ): Promise<TaskIds> => {
    if (Object.keys(written).length === 0) return { tasks: [] };
    await store.update(tx, loadBalancer.id, { ...written, updatedAt: clock.now() });
    const { projectId, generation } = loadBalancer;
    return {
      tasks: [await tasks.recordFinished(tx, context, { type, key: keyOf(loadBalancer), projectId, generation })],
    };
  };

  const update = (context: RequestContext, scope: Scope, id: string, body: UpdateLoadBalancer): Promise<TaskIds> =>
    idempotency.auditedTransaction(db, context, async (tx) => {
      const loadBalancer = await changes.lock(tx, scope, id);
      const written = changesOf(loadBalancer, body);
      const { admin_state_up: up = loadBalancer.adminStateUp } = body;
      const type = 'update_loadbalancer';
      if (up === loadBalancer.adminStateUp) return record(tx, context, loadBalancer, type, written);
      return {
        tasks: [await changes.enqueue(tx, context, loadBalancer, { type }, { ...written, adminStateUp: up })],
      };
    });

  return {
    async create(context: RequestContext, scope: Scope, body: CreateLoadBalancer): Promise<TaskIds> {
      const tags = newTags(body.tags ?? body.metadata);
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const { listeners = [] } = body;
        const range = deps.regions.get(scope.regionId)!.vipRange;
        const faults = [...notOffered(scope, range, body), ...deps.checkNested(scope, listeners)];
        const network = await place(deps.networks, tx, scope, body, faults);
        if (faults.length > 0 || !network || !range) throw invalidInput(faults);
        const taskId = randomUUID();
        const now = clock.now();
        const row = newLoadBalancer(scope, body, { ...network, tags, creatorTaskId: taskId, now });
        await takeAddress(tx, range, row);
        const parts = await deps.insertNested(tx, {
          scope,
          loadBalancerId: row.id,
          creatorTaskId: taskId,
          now,
          listeners,
        });
        await tasks.enqueue(tx, context, {
          id: taskId,
          type: 'create_loadbalancer',
          key: keyOf(row),
          projectId: scope.projectId,
          generation: row.generation,
          createdResources: { loadbalancers: [row.id], ...withoutEmpty(parts) },
        });
        await quota.reserve(tx, scope, { loadbalancer_count: 1 });
        return { tasks: [taskId] };
      });
    },

    async list(
      scope: Scope,
      filter: ListLoadBalancers,
    ): Promise<{ count: number; results: LoadBalancer[] | Groups<LoadBalancer> }> {
      const tags = tagFilterOf(filter);
      // None has a floating IP.
      if (filter.assigned_floating) return { count: 0, results: [] };
      const { count, rows } = await store.list(db, scope, filter, tags);
      const read = (ids: string[]) => store.viewsById(db, ids, filter.show_stats);
      return { count, results: readInGroups(rows, read, (row) => present(row, scope.regionName)) };
    },

    async get(scope: Scope, id: string, showStats?: boolean): Promise<LoadBalancer> {
      return present(await view(scope, id, showStats), scope.regionName);
    },

    update,

    /** The deprecated form answers the load balancer; it knows no change that the host must follow. */
    async updateV1(context: RequestContext, scope: Scope, id: string, body: UpdateLoadBalancer): Promise<LoadBalancer> {
      await update(context, scope, id, body);
      return present(await view(scope, id), scope.regionName);
    },

    /** With its listeners and pools; one whose deletion failed may be deleted again. */
    async delete(context: RequestContext, scope: Scope, id: string): Promise<TaskIds> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const loadBalancer = await store.lock(tx, id, scope);
        if (!loadBalancer) throw notFound('load balancer', id);
        const taskId = await tasks.lockedBy(tx, loadBalancer.id);
        if (taskId) throw resourceLocked('load balancer', id, taskId);
        await store.markDeleting(tx, id);
        const written = { provisioningStatus: 'PENDING_DELETE' as const, deletedAt: clock.now() };
        const task = { type: 'delete_loadbalancer' };
        return { tasks: [await changes.enqueue(tx, context, loadBalancer, task, written)] };
      });
    },

    /** A flavor is what is paid for; the host does the same for each. */
    async resize(context: RequestContext, scope: Scope, id: string, flavor: FlavorName): Promise<TaskIds> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const loadBalancer = await changes.lock(tx, scope, id);
        const written = flavor === loadBalancer.flavor ? {} : { flavor };
        return record(tx, context, loadBalancer, 'resize_loadbalancer', written);
      });
    },

    /** There is no other instance to go to: what the host has is compared with the rows, and mended. */
    async failover(context: RequestContext, scope: Scope, id: string): Promise<TaskIds> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const loadBalancer = await changes.lock(tx, scope, id);
        return { tasks: [await changes.enqueue(tx, context, loadBalancer, { type: 'failover_loadbalancer' })] };
      });
    },

    /** Some clients ask beside a load balancer that they have; the answer is the same. */
    async checkLimits(scope: Scope, body: CheckLoadBalancerLimits, besides?: string): Promise<LoadBalancerQuota> {
      if (besides) await view(scope, besides);
      const exceeded = await quota.exceeded(db, scope, {
        loadbalancer_count: 1,
        ...(body?.floating_ip?.source === 'new' && { floating_count: 1 }),
      });
      return Object.fromEntries(
        exceeded.flatMap(({ kind, limit, usage, requested }) => [
          [`${kind}_limit`, limit],
          [`${kind}_usage`, usage],
          [`${kind}_requested`, requested],
        ]),
      );
    },

    status: createLoadBalancerStatuses({ db }),
    metadata: createLoadBalancerMetadata({ db, idempotency, lock: changes.lock, record, loadBalancer: view }),
    traffic: createLoadBalancerTraffic({ db, clock, loadBalancer: view }),
  };
}

const networkFields = { network: 'vip_network_id', subnet: 'vip_subnet_id', none: 'vip_network_id' };

/** The network and subnet that it is said to be in; what is wrong with them joins the other faults. */
async function place(
  networks: Networks,
  tx: Tx,
  scope: Scope,
  { vip_network_id, vip_subnet_id }: CreateLoadBalancer,
  faults: FieldError[],
): Promise<{ networkId: string; subnetId: string } | null> {
  const given = vip_network_id && { network_id: vip_network_id, subnet_id: vip_subnet_id };
  try {
    return await networks.forNewResource(tx, scope, given || undefined, networkFields);
  } catch (error) {
    if (!(error instanceof ClientError) || error.code !== 'InvalidInput') throw error;
    faults.push(...error.errors);
    return null;
  }
}

/**
 * Inserts the row with the lowest address that is free. The index decides: whoever looked at the same time and came
 * second takes the next one. @throws ClientError 409 when all are taken
 */
async function takeAddress(tx: Tx, range: string, row: Omit<LoadBalancerRow, 'vipAddress'>): Promise<void> {
  for (;;) {
    const vipAddress = lowestFreeAddress(range, await store.takenAddresses(tx, row.regionId));
    if (vipAddress === null) {
      throw new ClientError('Conflict', `all addresses of ${range} are taken; delete a load balancer of the region`);
    }
    if (await store.insert(tx, { ...row, vipAddress })) return;
  }
}

/** What a patch changes in the row alone. `logging` is replaced whole. */
function changesOf(current: LoadBalancerRow, body: UpdateLoadBalancer): Partial<LoadBalancerRow> {
  const tags = body.tags === undefined ? current.tags : mergeTags(current.tags, body.tags);
  const logging = body.logging ? loggingOf(body.logging) : current.logging;
  const { name = current.name, preferred_connectivity: connectivity = current.preferredConnectivity } = body;
  return {
    ...(name !== current.name && { name }),
    ...(connectivity !== current.preferredConnectivity && { preferredConnectivity: connectivity }),
    ...(!isDeepStrictEqual(logging, current.logging) && { logging }),
    ...(!sameTags(tags, current.tags) && { tags }),
  };
}

function withoutEmpty(parts: CreatedParts): Partial<CreatedParts> {
  return Object.fromEntries(Object.entries(parts).filter(([, ids]) => ids.length > 0));
}

function present(row: LoadBalancerView, regionName: string): LoadBalancer {
  return {
    id: row.id,
    name: row.name,
    additional_vips: [],
    admin_state_up: row.adminStateUp,
    created_at: withZone(row.createdAt),
    creator_task_id: row.creatorTaskId,
    ddos_profile: null,
    flavor: presentFlavor(row.flavor),
    floating_ips: [],
    listeners: row.listenerIds.map((id) => ({ id })),
    logging: row.logging,
    operating_status: row.operatingStatus,
    preferred_connectivity: row.preferredConnectivity,
    project_id: row.projectId,
    provisioning_status: row.provisioningStatus,
    region: regionName,
    region_id: row.regionId,
    stats: row.stats,
    tags_v2: presentTags(row.tags),
    task_id: row.taskId,
    updated_at: withZone(row.updatedAt),
    vip_address: row.vipAddress,
    vip_fqdn: null,
    vip_ip_family: row.vipIpFamily,
    vip_port_id: row.vipPortId,
    vrrp_ips: [{ ip_address: row.vipAddress, role: 'STANDALONE', subnet_id: row.vipSubnetId }],
  };
}

/** Null when it is sold no more. */
function presentFlavor(name: string): LoadBalancer['flavor'] {
  if (!Object.hasOwn(flavors, name)) return null;
  return { flavor_id: name, flavor_name: name, ...flavors[name as FlavorName] };
}
