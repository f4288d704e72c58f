/** The rules of networks. Networks live in rows alone, so every change is done with its transaction. */
import { randomInt, randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { inUse, invalidInput, notFound } from '../../errors/catalogue.ts';
import type { Idempotency } from '../../idempotency/idempotency.ts';
import { withZone } from '../../platform/clock.ts';
import type { Clock } from '../../platform/clock.ts';
import { postgresCode } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { Quota } from '../../quota/quota.ts';
import { tagFilterOf } from '../../tags/filter.ts';
import { mergeTags, newTags, presentTags, replaceTags, sameTags } from '../../tags/tags.ts';
import type { CreateTags, Tags } from '../../tags/tags.ts';
import type { ResourceKey, Tasks } from '../../tasks/tasks.ts';
import type { CreateNetwork, ListNetworks, Network, NetworkCollection, NetworkType, UpdateNetwork } from './schema.ts';
import * as store from './store.ts';
import type { NetworkRow, NetworkView } from './store.ts';

export interface NetworksDeps {
  db: Db;
  clock: Clock;
  tasks: Tasks;
  quota: Quota;
  idempotency: Idempotency;
}

export type Networks = ReturnType<typeof createNetworks>;
type TaskIds = { tasks: string[] };

/** The network and subnet that a creator named. */
export interface GivenNetwork {
  network_id: string;
  subnet_id?: string;
}

/** Where a request names them, for errors. */
export interface NetworkFields {
  network: string;
  subnet: string;
  /** What is at fault when there is no network to take by default. */
  none: string;
}
const nestedFields = { network: 'network.network_id', subnet: 'network.subnet_id', none: 'network' };

const defaultCidr = '192.168.10.0/24';
const defaultGateway = '192.168.10.1';
const foreignKeyViolation = '23503';

export function createNetworks(deps: NetworksDeps) {
  const { db, clock, tasks, quota, idempotency } = deps;

  /** The row of a new network, in a project that stays live until the commit. @throws ClientError 404 */
  const insert = async (
    tx: Tx,
    scope: Scope,
    given: Pick<NetworkRow, 'name' | 'type' | 'isDefault' | 'tags' | 'creatorTaskId'>,
  ): Promise<NetworkRow> => {
    if (!(await store.holdProject(tx, scope.projectId))) throw notFound('project', scope.projectId);
    const now = clock.now();
    const network = {
      id: randomUUID(),
      projectId: scope.projectId,
      regionId: scope.regionId,
      ...given,
      ...segmentOf(given.type),
      createdAt: now,
      updatedAt: now,
    };
    await store.insert(tx, network);
    return network;
  };

  /** Writes what `changesOf` finds to change, and returns the network as it is then. @throws ClientError 404 */
  const change = async (
    tx: Tx,
    scope: Scope,
    id: string,
    changesOf: (current: NetworkRow) => Partial<NetworkRow>,
  ): Promise<{ network: NetworkView; changed: boolean }> => {
    const network = await store.lock(tx, scope, id, 'no key update');
    if (!network) throw notFound('network', id);
    const changes = changesOf(network);
    if (Object.keys(changes).length === 0) return { network, changed: false };
    const written = { ...changes, updatedAt: clock.now() };
    await store.update(tx, id, written);
    return { network: { ...network, ...written }, changed: true };
  };

  return {
    async create(context: RequestContext, scope: Scope, body: CreateNetwork): Promise<TaskIds> {
      const tags = newTags(body.tags ?? body.metadata);
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const taskId = randomUUID();
        const network = await insert(tx, scope, {
          name: body.name,
          type: body.type ?? 'vxlan',
          isDefault: false,
          tags,
          creatorTaskId: taskId,
        });
        await tasks.recordFinished(tx, context, {
          id: taskId,
          type: 'create_network',
          key: keyOf(network),
          projectId: network.projectId,
          generation: 1,
          createdResources: { networks: [network.id] },
        });
        await quota.reserve(tx, scope, { network_count: 1 });
        return { tasks: [taskId] };
      });
    },

    async list(scope: Scope, filter: ListNetworks): Promise<NetworkCollection> {
      const tags = tagFilterOf(filter);
      if (filter.external) return { count: 0, results: [] };
      const { count, rows } = await store.list(db, scope, filter, tags);
      return { count, results: rows.map((row) => present(row, scope.regionName)) };
    },

    async get(scope: Scope, id: string): Promise<Network> {
      const network = await store.view(db, scope, id);
      if (!network) throw notFound('network', id);
      return present(network, scope.regionName);
    },

    async update(context: RequestContext, scope: Scope, id: string, body: UpdateNetwork): Promise<TaskIds> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const { network, changed } = await change(tx, scope, id, (current) => changesOf(current, body));
        if (!changed) return { tasks: [] };
        const done = { type: 'update_network', key: keyOf(network), projectId: network.projectId, generation: 1 };
        return { tasks: [await tasks.recordFinished(tx, context, done)] };
      });
    },

    /** The older form answers the network, without a task. */
    async updateV1(context: RequestContext, scope: Scope, id: string, body: UpdateNetwork): Promise<Network> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const { network } = await change(tx, scope, id, (current) => changesOf(current, body));
        return present(network, scope.regionName);
      });
    },

    async replaceTags(context: RequestContext, scope: Scope, id: string, tags: CreateTags): Promise<void> {
      await idempotency.auditedTransaction(db, context, (tx) =>
        change(tx, scope, id, (current) => changesOfTags(current, replaceTags(current.tags, tags))),
      );
    },

    async delete(context: RequestContext, scope: Scope, id: string): Promise<TaskIds> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const network = await store.lock(tx, scope, id, 'update');
        if (!network) throw notFound('network', id);
        const uses = await store.uses(tx, id);
        if (uses.length > 0) throw inUse('network', id, uses);
        await store.remove(tx, id).catch((error: unknown) => {
          throw postgresCode(error) === foreignKeyViolation ? inUse('network', id, []) : error;
        });
        const done = { type: 'delete_network', key: keyOf(network), projectId: network.projectId, generation: 1 };
        const taskId = await tasks.recordFinished(tx, context, done);
        await quota.release(tx, scope, { network_count: 1 });
        return { tasks: [taskId] };
      });
    },

    /**
     * Where a new resource goes: the network and subnet that its creator named, or else the project's default ones in
     * the region. Both stay until the commit. @throws ClientError 400 naming the field at fault
     */
    async forNewResource(
      tx: Tx,
      scope: Scope,
      given?: GivenNetwork,
      fields: NetworkFields = nestedFields,
    ): Promise<{ networkId: string; subnetId: string }> {
      const networkId = given?.network_id ?? null;
      const found = await store.chooseForNewResource(tx, scope, networkId, given?.subnet_id ?? null);
      if (!found?.subnetId) throw noNetwork(fields, given, found?.networkId);
      return { networkId: found.networkId, subnetId: found.subnetId };
    },

    /** The network that a project's resources in a region go to unless told otherwise, with its one subnet. */
    async createDefault(tx: Tx, scope: Scope): Promise<void> {
      const network = await insert(tx, scope, {
        name: 'default',
        type: 'vxlan',
        isDefault: true,
        tags: {},
        creatorTaskId: null,
      });
      const { projectId, regionId, createdAt, updatedAt } = network;
      await store.insertFirstSubnet(tx, {
        id: randomUUID(),
        projectId,
        regionId,
        networkId: network.id,
        name: 'default',
        cidr: defaultCidr,
        ipVersion: 4,
        gatewayIp: defaultGateway,
        enableDhcp: true,
        dnsNameservers: [],
        hostRoutes: [],
        tags: {},
        creatorTaskId: null,
        createdAt,
        updatedAt,
      });
      await quota.reserve(tx, scope, { network_count: 1, subnet_count: 1 });
    },
  };
}

/** Numbers of a network as they would be on a wire; unique only by luck, as no wire carries it. */
function segmentOf(type: NetworkType): Pick<NetworkRow, 'segmentationId' | 'mtu'> {
  return type === 'vlan'
    ? { segmentationId: randomInt(1, 4095), mtu: 1500 }
    : { segmentationId: randomInt(1, 16_777_216), mtu: 1450 };
}

function changesOf(network: NetworkRow, body: UpdateNetwork): Partial<NetworkRow> {
  const tags = body.tags === undefined ? network.tags : mergeTags(network.tags, body.tags);
  return {
    ...(body.name !== undefined && body.name !== network.name && { name: body.name }),
    ...changesOfTags(network, tags),
  };
}

function changesOfTags(network: NetworkRow, tags: Tags): Partial<NetworkRow> {
  return sameTags(tags, network.tags) ? {} : { tags };
}

function noNetwork(fields: NetworkFields, given: GivenNetwork | undefined, found: string | undefined) {
  if (!given) {
    const message = found
      ? `network ${found}, which it would be in, has no subnet; create one, or name another network`
      : 'the project has no network in this region; create one with a subnet first';
    return invalidInput([{ path: fields.none, message }]);
  }
  if (!found) {
    const message = `network ${given.network_id} was not found in this project and region`;
    return invalidInput([{ path: fields.network, message }]);
  }
  if (given.subnet_id !== undefined) {
    const message = `subnet ${given.subnet_id} was not found in network ${found}`;
    return invalidInput([{ path: fields.subnet, message }]);
  }
  return invalidInput([{ path: fields.network, message: `network ${found} has no subnet; create one first` }]);
}

function keyOf(network: NetworkRow): ResourceKey {
  return { resource: 'network', id: network.id, regionId: network.regionId };
}

function present(network: NetworkView, regionName: string): Network {
  const tags = presentTags(network.tags);
  return {
    id: network.id,
    name: network.name,
    created_at: withZone(network.createdAt),
    creator_task_id: network.creatorTaskId,
    default: network.isDefault,
    external: false,
    mtu: network.mtu,
    port_security_enabled: true,
    project_id: network.projectId,
    region: regionName,
    region_id: network.regionId,
    segmentation_id: network.segmentationId,
    shared: false,
    subnets: network.subnetIds,
    tags,
    metadata: tags,
    task_id: null,
    type: network.type,
    updated_at: withZone(network.updatedAt),
  };
}
