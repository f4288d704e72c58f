/** Rules of load balancers. A load balancer and its listeners and pools share one lock and one job (locked-changes.ts). */
import { randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { ClientError, type FieldError, requireNoErrors } from '../../errors/catalogue.ts';
import type { IsInvalid, ValidFields } from '../../errors/valid-fields.ts';
import { withZone } from '../../platform/clock.ts';
import type { Tx } from '../../platform/db.ts';
import { pageInGroups } from '../../platform/large-rows.ts';
import type { MemberRules } from '../../platform/member-networks.ts';
import { lowestFreeAddress } from '../../platform/network-address.ts';
import { tagFilterOf } from '../../tags/filter.ts';
import { newTags, type TagChange, type Tags, toTagList } from '../../tags/tags.ts';
import {
  changedColumns,
  changesUnderLock,
  type ChangeUnderLock,
  isEmpty,
  patchedTags,
  requireFound,
  type ServiceDeps,
  type TaskIds,
  toQuotaFields,
  withErrors,
} from '../service-kit.ts';
import type { Networks } from '../networks/service.ts';
import type { RegionFacts, Regions } from '../regions/service.ts';
import type { Listeners } from './listeners/service.ts';
import { errorsOfLoadBalancer } from './body-errors.ts';
import { keyOf, type LoadBalancerChanges } from './locked-changes.ts';
import { flavorErrors, flavorToResponse } from './flavors.ts';
import { type Instance, instancesOf, vrrpIps } from './instances.ts';
import { newLoadBalancer, newLogging, regionErrors, unsupportedFields } from './new-load-balancer.ts';
import type {
  CheckLoadBalancerLimits,
  CreateLoadBalancer,
  ListLoadBalancers,
  LoadBalancer,
  LoadBalancerRequiredQuota,
  UpdateLoadBalancer,
  VipFamily,
} from './schema.ts';
import { createLoadBalancerStatuses } from './status/service.ts';
import * as store from './store.ts';
import type { LoadBalancerView } from './store.ts';
import type { LoadBalancerRow } from './table.ts';
import { createLoadBalancerTraffic } from './traffic/service.ts';

interface LoadBalancersDeps extends ServiceDeps {
  networks: Networks;
  regions: Regions;
  changes: LoadBalancerChanges;
  listeners: Pick<Listeners, 'nestedErrors' | 'insertNested'>;
  memberRules: MemberRules;
}

export type LoadBalancers = ReturnType<typeof createLoadBalancers>;

export function createLoadBalancers(deps: LoadBalancersDeps) {
  const { db, clock, quota, idempotency, changes } = deps;

  const regionOf = (scope: Scope): RegionFacts => deps.regions.get(scope.regionId)!;

  const view = async (scope: Scope, id: string, showStats?: boolean): Promise<LoadBalancerView> =>
    requireFound(await store.view(db, scope, id, showStats), 'load balancer', id);

  const show = async (scope: Scope, id: string, showStats?: boolean): Promise<LoadBalancer> => {
    const region = regionOf(scope);
    return toResponse(await view(scope, id, showStats), region, await instancesOf(db, region));
  };

  /** Changes that the host need not follow: their task is finished with the transaction. */
  const record = async (
    tx: Tx,
    context: RequestContext,
    loadBalancer: LoadBalancerRow,
    type: string,
    written: Partial<LoadBalancerRow>,
  ): Promise<TaskIds> => {
    if (isEmpty(written)) return { tasks: [] };
    await store.update(tx, loadBalancer.id, { ...written, updatedAt: clock.now() });
    return changes.recordFinished(tx, context, loadBalancer, { type });
  };

  const change: ChangeUnderLock<LoadBalancerRow> = (context, scope, id, write) =>
    idempotency.auditedTransaction(db, context, async (tx) => write(tx, await changes.lock(tx, scope, id)));
  /** As `change`, also after a failed deletion. */
  const deletion = changesUnderLock(deps, 'load balancer', store.lock);

  const writeTags =
    (context: RequestContext, tagChange: TagChange, type = 'update_lbmetadata') =>
    (tx: Tx, loadBalancer: LoadBalancerRow) =>
      record(tx, context, loadBalancer, type, changedColumns(loadBalancer, { tags: tagChange(loadBalancer.tags) }));

  const update = (context: RequestContext, scope: Scope, id: string, body: UpdateLoadBalancer): Promise<TaskIds> =>
    change(context, scope, id, async (tx, loadBalancer) => {
      const written = changedColumns(loadBalancer, {
        name: body.name,
        preferredConnectivity: body.preferred_connectivity,
        logging: body.logging && newLogging(body.logging),
        tags: patchedTags(loadBalancer.tags, body.tags),
      });
      const { admin_state_up: up } = body;
      const type = 'update_loadbalancer';
      // After a failure the same update is a retry.
      const isFollowed = up !== loadBalancer.adminStateUp || loadBalancer.provisioningStatus === 'ERROR';
      if (up === undefined || !isFollowed) return record(tx, context, loadBalancer, type, written);
      return changes.enqueue(tx, context, loadBalancer, { type }, { ...written, adminStateUp: up });
    });

  return {
    create: (context: RequestContext, scope: Scope, body: CreateLoadBalancer): Promise<TaskIds> =>
      retryTakenAddress(() =>
        idempotency.auditedTransaction(db, context, (tx) => insertWithListeners(deps, tx, context, scope, body)),
      ),

    /** For an invalid body. Without a region in the path, what depends on it is not checked. */
    bodyErrors(
      body: ValidFields<CreateLoadBalancer>,
      isInvalid: IsInvalid,
      { region_id }: { region_id?: number },
    ): FieldError[] {
      const region = deps.regions.get(region_id);
      if (!region) return errorsOfLoadBalancer(body, null, isInvalid);
      return [
        ...errorsOfLoadBalancer(body, deps.memberRules(region.id), isInvalid),
        ...regionErrors(region, body),
        ...(body.flavor === undefined ? [] : flavorErrors(region.loadBalancerFlavors, body.flavor)),
      ];
    },

    async list(scope: Scope, filter: ListLoadBalancers) {
      const tags = tagFilterOf(filter);
      // No load balancer has a floating IP.
      if (filter.assigned_floating) return { count: 0, results: [] };
      const found = await store.list(db, scope, filter, tags);
      const read = (ids: string[]) => store.viewsById(db, ids, filter.show_stats);
      const region = regionOf(scope);
      const instances = await instancesOf(db, region);
      return pageInGroups(found, read, (row) => toResponse(row, region, instances));
    },

    get: show,
    update,

    /** The deprecated update returns the load balancer and makes no changes that the host must follow. */
    async updateV1(context: RequestContext, scope: Scope, id: string, body: UpdateLoadBalancer): Promise<LoadBalancer> {
      await update(context, scope, id, body);
      return show(scope, id);
    },

    /** Also deletes its listeners and pools. A failed deletion can be repeated. */
    delete: (context: RequestContext, scope: Scope, id: string): Promise<TaskIds> =>
      deletion(context, scope, id, async (tx, loadBalancer) => {
        await store.markDeleting(tx, id);
        const written = { provisioningStatus: 'PENDING_DELETE' as const, deletedAt: clock.now() };
        return changes.enqueue(tx, context, loadBalancer, { type: 'delete_loadbalancer' }, written);
      }),

    /** Flavors have different prices; the host treats them alike. */
    async resize(context: RequestContext, scope: Scope, id: string, flavor: string): Promise<TaskIds> {
      requireNoErrors(flavorErrors(regionOf(scope).loadBalancerFlavors, flavor));
      return change(context, scope, id, (tx, loadBalancer) =>
        record(tx, context, loadBalancer, 'resize_loadbalancer', changedColumns(loadBalancer, { flavor })),
      );
    },

    /** A load balancer has no standby: the host is compared with the rows and repaired. */
    failover: (context: RequestContext, scope: Scope, id: string): Promise<TaskIds> =>
      change(context, scope, id, (tx, loadBalancer) =>
        changes.enqueue(tx, context, loadBalancer, { type: 'failover_loadbalancer' }),
      ),

    tagsOf: async (scope: Scope, id: string): Promise<Tags> => (await view(scope, id)).tags,

    changeTags: (
      context: RequestContext,
      scope: Scope,
      id: string,
      tagChange: TagChange,
      type?: 'replace_lbmetadata' | 'delete_lbmetadata',
    ): Promise<TaskIds> => change(context, scope, id, writeTags(context, tagChange, type)),

    /** The v1 operations return nothing. */
    changeTagsV1: (context: RequestContext, scope: Scope, id: string, tagChange: TagChange): Promise<void> =>
      change(context, scope, id, async (tx, loadBalancer) => {
        await writeTags(context, tagChange)(tx, loadBalancer);
      }),

    /** Some clients name an existing load balancer; the response is the same. */
    async checkLimits(
      scope: Scope,
      body: CheckLoadBalancerLimits,
      existing?: string,
    ): Promise<LoadBalancerRequiredQuota> {
      if (existing) await view(scope, existing);
      const exceeded = await quota.exceeded(db, scope, {
        loadbalancer_count: 1,
        ...(body.floating_ip?.source === 'new' && { floating_count: 1 }),
      });
      return toQuotaFields(exceeded);
    },

    status: createLoadBalancerStatuses({ db }),
    traffic: createLoadBalancerTraffic({ db, clock, loadBalancer: view }),
  };
}

/** Writes a load balancer with its listeners and pools, and its task. @throws ClientError 400 with all errors, 409 */
async function insertWithListeners(
  deps: LoadBalancersDeps,
  tx: Tx,
  context: RequestContext,
  scope: Scope,
  body: CreateLoadBalancer,
): Promise<TaskIds> {
  const { clock, tasks, quota } = deps;
  const { listeners = [] } = body;
  const { region, network, addresses, flavor, tags } = await checkCreate(deps, tx, scope, body);
  const taskId = randomUUID();
  const now = clock.now();
  const row = newLoadBalancer(scope, body, { ...network, tags, flavor, creatorTaskId: taskId, now });
  await store.insert(tx, { ...row, ...freeAddresses(addresses, region, row.vipIpFamily) });
  const nested = { scope, loadBalancerId: row.id, creatorTaskId: taskId, now, listeners };
  const created = Object.entries(await deps.listeners.insertNested(tx, nested));
  if (listeners.length > 0) await store.limitMembers(tx, row.id);
  await tasks.enqueue(tx, context, {
    id: taskId,
    type: 'create_loadbalancer',
    key: keyOf(row),
    projectId: scope.projectId,
    generation: row.generation,
    createdResources: {
      loadbalancers: [row.id],
      ...Object.fromEntries(created.filter(([, ids]) => ids.length > 0)),
    },
  });
  await quota.reserve(tx, scope, { loadbalancer_count: 1 });
  return { tasks: [taskId] };
}

/** The region, its used addresses, the network, flavor and tags. @throws ClientError 400 with all errors */
async function checkCreate(
  { db, networks, listeners, regions }: LoadBalancersDeps,
  tx: Tx,
  scope: Scope,
  body: CreateLoadBalancer,
) {
  const region = regions.get(scope.regionId)!;
  const { loadBalancerFlavors } = region;
  const flavor = body.flavor ?? loadBalancerFlavors[0]!.name;
  const { tags, errors } = newTags(body);
  errors.push(...regionErrors(region, body), ...unsupportedFields(body), ...flavorErrors(loadBalancerFlavors, flavor));
  const { vip_network_id, vip_subnet_id } = body;
  const given = vip_network_id && { network_id: vip_network_id, subnet_id: vip_subnet_id };
  // These reads come before the first statement of `tx`, which takes a connection: requests that hold one while they wait
  // for another could use up the pool.
  const choosing = networks.forNewResource(scope, given || undefined, networkFields);
  await choosing.catch(() => {});
  const addresses = await store.usedAddresses(db, region.id);
  errors.push(...(await listeners.nestedErrors(tx, scope, body.listeners ?? [], body.vip_ip_family ?? 'ipv4')));
  const network = await withErrors(errors, choosing);
  return { region, network, addresses, flavor, tags };
}

const networkFields = { network: 'vip_network_id', subnet: 'vip_subnet_id', none: 'vip_network_id' };

/** Of concurrent creates with the same address, the unique indexes let one insert; the others try the next address. */
async function retryTakenAddress<T>(create: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await create();
    } catch (error) {
      if (!store.isAddressTaken(error)) throw error;
    }
  }
}

/** The lowest free addresses of a family, which are not reserved. @throws ClientError 409 if no address is free */
function freeAddresses(
  used: ReadonlySet<string>,
  { vipRange, vipRangeV6 }: RegionFacts,
  family: VipFamily,
): Pick<LoadBalancerRow, 'vipAddress' | 'vipAddressV6'> {
  const vipAddressV6 = family === 'ipv4' ? null : freeAddress(vipRangeV6!, used);
  return { vipAddress: family === 'ipv6' ? vipAddressV6! : freeAddress(vipRange!, used), vipAddressV6 };
}

function freeAddress(range: string, used: ReadonlySet<string>): string {
  const address = lowestFreeAddress(range, used);
  if (address !== null) return address;
  throw new ClientError('Conflict', `all addresses of ${range} are in use; delete a load balancer of the region`);
}

function toResponse(row: LoadBalancerView, region: RegionFacts, instances: Instance[] | null): LoadBalancer {
  const tags = toTagList(row.tags);
  return {
    id: row.id,
    name: row.name,
    additional_vips: row.vipIpFamily === 'dual' ? [{ ip_address: row.vipAddressV6!, subnet_id: row.vipSubnetId }] : [],
    admin_state_up: row.adminStateUp,
    created_at: withZone(row.createdAt),
    creator_task_id: row.creatorTaskId,
    ddos_profile: null,
    flavor: flavorToResponse(region.loadBalancerFlavors, row.flavor),
    floating_ips: [],
    listeners: row.listenerIds.map((id) => ({ id })),
    logging: row.logging,
    metadata: tags,
    operating_status: row.operatingStatus,
    preferred_connectivity: row.preferredConnectivity,
    project_id: row.projectId,
    provisioning_status: row.provisioningStatus,
    region: region.name,
    region_id: row.regionId,
    stats: row.stats,
    tags_v2: tags,
    task_id: row.taskId,
    updated_at: withZone(row.updatedAt),
    vip_address: row.vipAddress,
    vip_fqdn: null,
    vip_ip_family: row.vipIpFamily,
    vip_port_id: row.vipPortId,
    vrrp_ips: vrrpIps(row, region, instances),
  };
}
