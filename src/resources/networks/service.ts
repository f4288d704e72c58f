/** The rules of networks. A network is only a row, so every change is done with its transaction. */
import { randomInt, randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { invalidInput, requireNoErrors } from '../../errors/catalogue.ts';
import { withZone } from '../../platform/clock.ts';
import type { Tx } from '../../platform/db.ts';
import { tagFilterOf } from '../../tags/filter.ts';
import { newTags, toTagList } from '../../tags/tags.ts';
import { createRowResource } from '../row-kit.ts';
import {
  changesInRow,
  changesUnderLock,
  type Collection,
  patchedTags,
  requireFound,
  requireProject,
  type ServiceDeps,
  tagsInRow,
  type TaskIds,
  toCollection,
  updatesAt,
} from '../service-kit.ts';
import type { CreateNetwork, Network, NetworkType, UpdateNetwork } from './schema.ts';
import * as store from './store.ts';
import type { NetworkFilter, NetworkRow, NetworkView } from './store.ts';

export type Networks = ReturnType<typeof createNetworks>;

/** The network and subnet that a create request names. */
interface GivenNetwork {
  network_id: string;
  subnet_id?: string;
}

/** The fields of the request that name them, for errors. */
interface NetworkFields {
  network: string;
  subnet: string;
  /** The field to report if the network that is used by default cannot be; null: a request that names none cannot name one. */
  none: string | null;
}
const nestedFields = { network: 'network.network_id', subnet: 'network.subnet_id', none: null };

export function createNetworks(deps: ServiceDeps) {
  const { db, clock, quota, idempotency } = deps;
  const networks = createRowResource(deps, 'network', store, [store.findUses]);

  const view = async (scope: Scope, id: string): Promise<NetworkView> =>
    requireFound(await store.view(db, scope, id), 'network', id);

  /** Inserts a network into a project that cannot be deleted until the commit. @throws ClientError 404 */
  const insert = async (
    tx: Tx,
    scope: Scope,
    given: Pick<NetworkRow, 'name' | 'type' | 'isDefault' | 'tags' | 'creatorTaskId'>,
  ): Promise<NetworkRow> => {
    await requireProject(tx, scope.projectId);
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

  const change = changesUnderLock(deps, 'network', store.lockAllowingReferences);
  const changeInRow = changesInRow(updatesAt<NetworkRow>(clock, store.update));

  return {
    async create(context: RequestContext, scope: Scope, body: CreateNetwork): Promise<TaskIds> {
      const { tags, errors } = newTags(body);
      requireNoErrors(errors);
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const taskId = randomUUID();
        const network = await insert(tx, scope, {
          name: body.name,
          type: body.type ?? 'vxlan',
          isDefault: false,
          tags,
          creatorTaskId: taskId,
        });
        return networks.recordCreated(tx, context, scope, network, taskId);
      });
    },

    async list(scope: Scope, filter: NetworkFilter): Promise<Collection<Network>> {
      const tags = tagFilterOf(filter);
      if (filter.external || filter.shared) return { count: 0, results: [] };
      return toCollection(await store.list(db, scope, filter, tags), toResponse, scope.regionName);
    },

    async get(scope: Scope, id: string): Promise<Network> {
      return toResponse(await view(scope, id), scope.regionName);
    },

    update: (context: RequestContext, scope: Scope, id: string, body: UpdateNetwork): Promise<TaskIds> =>
      change(context, scope, id, async (tx, network) => {
        const isChanged = await changeInRow(tx, network, changesOf(network, body));
        return isChanged ? networks.recordUpdated(tx, context, network) : { tasks: [] };
      }),

    /** The older form returns the network and has no task. */
    updateV1: (context: RequestContext, scope: Scope, id: string, body: UpdateNetwork): Promise<Network> =>
      change(context, scope, id, async (tx, network) => {
        await changeInRow(tx, network, changesOf(network, body));
        return toResponse((await store.view(tx, scope, id))!, scope.regionName);
      }),

    ...tagsInRow(view, change, changeInRow),

    delete: networks.delete,

    /**
     * The network and subnet of a new resource: those that the request names, or the project's default ones in the
     * region. It locks nothing: if one is deleted meanwhile, the insert violates a foreign key and the transaction runs
     * again. @throws ClientError 400 naming the invalid field
     */
    async forNewResource(
      scope: Scope,
      given?: GivenNetwork,
      fields: NetworkFields = nestedFields,
    ): Promise<{ networkId: string; subnetId: string }> {
      const networkId = given?.network_id ?? null;
      const found = await store.chooseForNewResource(db, scope, networkId, given?.subnet_id ?? null);
      if (!found?.subnetId) throw noNetwork(fields, given, found?.networkId);
      return { networkId: found.networkId, subnetId: found.subnetId };
    },

    /** Creates the default network of a project in a region, with one subnet. */
    async createDefault(tx: Tx, scope: Scope): Promise<void> {
      const network = await insert(tx, scope, {
        name: 'default',
        type: 'vxlan',
        isDefault: true,
        tags: {},
        creatorTaskId: null,
      });
      await store.insertFirstSubnet(tx, defaultSubnetOf(network));
      await quota.reserve(tx, scope, { network_count: 1, subnet_count: 1 });
    },
  };
}

function defaultSubnetOf({ id, projectId, regionId, createdAt, updatedAt }: NetworkRow) {
  return {
    id: randomUUID(),
    projectId,
    regionId,
    networkId: id,
    name: 'default',
    cidr: '192.168.10.0/24',
    ipVersion: 4 as const,
    gatewayIp: '192.168.10.1',
    enableDhcp: true,
    dnsNameservers: [],
    hostRoutes: [],
    tags: {},
    creatorTaskId: null,
    createdAt,
    updatedAt,
  };
}

/** A random segment: no packets carry it, so it need not be unique. */
function segmentOf(type: NetworkType): Pick<NetworkRow, 'segmentationId' | 'mtu'> {
  return type === 'vlan'
    ? { segmentationId: randomInt(1, 4095), mtu: 1500 }
    : { segmentationId: randomInt(1, 16_777_216), mtu: 1450 };
}

function changesOf({ tags }: NetworkRow, body: UpdateNetwork): Partial<Pick<NetworkRow, 'name' | 'tags'>> {
  return { name: body.name, tags: patchedTags(tags, body.tags) };
}

function noNetwork(fields: NetworkFields, given: GivenNetwork | undefined, found: string | undefined) {
  if (!given) {
    const message = found
      ? `network ${found}, which is used by default, has no subnet; create one${fields.none ? ', or name another network' : ''}`
      : 'the project has no network in this region; create one with a subnet first';
    return invalidInput([{ path: fields.none ?? '', message }]);
  }
  if (!found) {
    const message = `network ${given.network_id} not found in this project and region`;
    return invalidInput([{ path: fields.network, message }]);
  }
  if (given.subnet_id !== undefined) {
    const message = `subnet ${given.subnet_id} not found in network ${found}`;
    return invalidInput([{ path: fields.subnet, message }]);
  }
  return invalidInput([{ path: fields.network, message: `network ${found} has no subnet; create one first` }]);
}

function toResponse(network: NetworkView, regionName: string): Network {
  const tags = toTagList(network.tags);
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
