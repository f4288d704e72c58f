/** The rules of subnets. A subnet is only a row, so every change is done with its transaction. */
import { randomUUID } from 'node:crypto';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { ClientError, type FieldError, requireNoErrors } from '../../errors/catalogue.ts';
import type { IsInvalid, ValidFields } from '../../errors/valid-fields.ts';
import { withZone } from '../../platform/clock.ts';
import type { Db, Tx } from '../../platform/db.ts';
import { type PageInGroups, readInGroups } from '../../platform/large-rows.ts';
import { type Address, canonicalNetwork, contains, isAddress } from '../../platform/network-address.ts';
import { tagFilterOf } from '../../tags/filter.ts';
import { errorsOfNewTags, newTags, toTagList } from '../../tags/tags.ts';
import type { Networks } from '../networks/service.ts';
import { createRowResource } from '../row-kit.ts';
import {
  changesInRow,
  changesUnderLock,
  type Collection,
  patchedTags,
  requireFound,
  type ServiceDeps,
  tagsInRow,
  type TaskIds,
  toCollection,
  updatesAt,
} from '../service-kit.ts';
import type {
  AvailableNetwork,
  CreateSubnet,
  ListAvailableNetworks,
  ListSubnets,
  Subnet,
  UpdateSubnet,
} from './schema.ts';
import * as store from './store.ts';
import type { SubnetRow, SubnetView } from './store.ts';

export type Subnets = ReturnType<typeof createSubnets>;

interface SubnetsDeps extends ServiceDeps {
  networks: Pick<Networks, 'list'>;
}

export function createSubnets(deps: SubnetsDeps) {
  const { db, clock, idempotency, networks } = deps;
  const subnets = createRowResource(deps, 'subnet', store, [store.findUses]);

  const view = async (on: Db | Tx, scope: Scope, id: string): Promise<SubnetView> =>
    requireFound(await store.view(on, scope, id), 'subnet', id);

  const change = changesUnderLock(deps, 'subnet', store.lockAllowingReferences);
  const changeInRow = changesInRow(updatesAt<SubnetRow>(clock, store.update));

  return {
    /** For an invalid body. A rule that needs an invalid field is skipped. */
    bodyErrors({ cidr, host_routes: routes, ...body }: ValidFields<CreateSubnet>, isInvalid: IsInvalid): FieldError[] {
      const errors = errorsOfNewTags(body, isInvalid);
      if (cidr === undefined) return errors;
      const isWhole = routes?.every((route) => route.destination !== undefined && route.nexthop !== undefined);
      return [...errors, ...createErrors({ ...body, cidr, host_routes: isWhole ? routes : null } as CreateSubnet)];
    },

    async create(context: RequestContext, scope: Scope, body: CreateSubnet): Promise<TaskIds> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const { tags, errors } = newTags(body);
        errors.push(...createErrors(body));
        if (!(await store.lockNetwork(tx, scope, body.network_id))) {
          const message = `network ${body.network_id} not found in this project and region`;
          errors.push({ path: 'network_id', message });
        }
        requireNoErrors(errors);
        const taskId = randomUUID();
        const subnet = newSubnet(scope, body, clock.now());
        await requireNoOverlap(tx, subnet);
        await store.insert(tx, { ...subnet, tags, creatorTaskId: taskId });
        return subnets.recordCreated(tx, context, scope, subnet, taskId);
      });
    },

    async list(scope: Scope, filter: ListSubnets): Promise<Collection<Subnet>> {
      return toCollection(await store.list(db, scope, filter, tagFilterOf(filter)), toResponse, scope.regionName);
    },

    async get(scope: Scope, id: string): Promise<Subnet> {
      return toResponse(await view(db, scope, id), scope.regionName);
    },

    update: (context: RequestContext, scope: Scope, id: string, body: UpdateSubnet): Promise<Subnet> =>
      change(context, scope, id, async (tx, subnet) => {
        await changeInRow(tx, subnet, changesOf(subnet, body));
        return toResponse(await view(tx, scope, id), scope.regionName);
      }),

    ...tagsInRow((scope, id) => view(db, scope, id), change, changeInRow),

    /** A page of networks. The subnets of each are read on demand: together they may be large. */
    async listByNetwork(scope: Scope, filter: ListAvailableNetworks): Promise<PageInGroups<AvailableNetwork>> {
      const { count, results } = await networks.list(scope, filter);
      const sizes = await store.bytesOfNetworks(
        db,
        results.map(({ id }) => id),
      );
      const rows = results.map(({ id }) => ({ id, bytes: sizes.get(id) ?? 0 }));
      const byId = new Map(results.map((network) => [network.id, network]));
      const read = async (ids: string[]) => {
        const subnetsOf = Map.groupBy(await store.ofNetworks(db, ids), ({ networkId }) => networkId);
        return ids.map((id) => ({ ...byId.get(id)!, subnets: subnetsOf.get(id) ?? [] }));
      };
      return {
        count,
        results: readInGroups(rows, read, (network) => ({
          ...network,
          subnets: network.subnets.map((row) => toResponse(row, scope.regionName)),
        })),
      };
    },

    delete: subnets.delete,
  };
}

/** @throws ClientError 409 when another subnet of the network has some of the addresses. Lock the network first. */
async function requireNoOverlap(tx: Tx, subnet: { networkId: string; cidr: string }): Promise<void> {
  const other = await store.findOverlapping(tx, subnet.networkId, subnet.cidr);
  if (!other) return;
  throw new ClientError('Conflict', `${subnet.cidr} overlaps subnet ${other.id} (${other.cidr}) of the same network`);
}

interface Range {
  cidr: string;
  address: Address;
  prefix: number;
  version: 4 | 6;
}

/** `text` is an address or a network without host bits: the schema has checked that. */
function rangeOf(text: string): Range {
  const cidr = canonicalNetwork(text)!;
  const [address, prefix] = ipaddr.parseCIDR(cidr);
  return { cidr, address, prefix, version: address.kind() === 'ipv4' ? 4 : 6 };
}

const smallestPrefix = 8;
/** A longer prefix has no room for a gateway and a host. */
const largestPrefix = { 4: 30, 6: 126 };

function createErrors(body: CreateSubnet): FieldError[] {
  const errors: FieldError[] = [];
  const { address, prefix, version } = rangeOf(body.cidr);
  if (prefix < smallestPrefix || prefix > largestPrefix[version]) {
    const message = `must have a prefix from /${smallestPrefix} to /${largestPrefix[version]}; this is /${prefix}`;
    errors.push({ path: 'cidr', message });
  }
  const range = address.range();
  if (range === 'multicast' || range === 'loopback') {
    errors.push({ path: 'cidr', message: `must not be a ${range} network` });
  }
  if (body.ip_version !== undefined && body.ip_version !== version) {
    errors.push({ path: 'ip_version', message: `must be ${version}: ${body.cidr} is an IPv${version} network` });
  }
  return [...errors, ...settingsErrors(body.cidr, body)];
}

type Settings = Pick<UpdateSubnet, 'gateway_ip' | 'dns_nameservers' | 'host_routes'>;

function settingsErrors(cidr: string, { gateway_ip, dns_nameservers, host_routes }: Settings): FieldError[] {
  const range = rangeOf(cidr);
  const errors: FieldError[] = [];
  const note = (path: string, message: string | null) => {
    if (message !== null) errors.push({ path, message });
  };
  if (gateway_ip) note('gateway_ip', gatewayError(range, gateway_ip));
  for (const [i, server] of (dns_nameservers ?? []).entries()) {
    note(`dns_nameservers.${i}`, addressError(range, server));
  }
  for (const [i, { destination, nexthop }] of (host_routes ?? []).entries()) {
    note(`host_routes.${i}.destination`, destinationError(range, destination));
    note(`host_routes.${i}.nexthop`, addressError(range, nexthop));
  }
  return errors;
}

function addressError({ version }: Range, text: string): string | null {
  return isAddress(text) && isIP(text) === version ? null : `must be an IPv${version} address, like the subnet's`;
}

function destinationError({ version }: Range, text: string): string | null {
  return rangeOf(text).version === version ? null : `must be an IPv${version} network, like the subnet`;
}

function gatewayError({ cidr, address: first, prefix, version }: Range, text: string): string | null {
  if (!isAddress(text) || !contains([first, prefix], ipaddr.parse(text))) return `must be an address of ${cidr}`;
  if (version === 6) return null;
  const ends = [first.toString(), ipaddr.IPv4.broadcastAddressFromCIDR(cidr).toString()];
  return ends.includes(text) ? `must be a host address of ${cidr}, not its first or last address` : null;
}

function firstHost({ address }: Range): string {
  const bytes = address.toByteArray();
  bytes[bytes.length - 1]! += 1;
  return ipaddr.fromByteArray(bytes).toString();
}

function newSubnet(scope: Scope, body: CreateSubnet, now: Date): Omit<SubnetRow, 'tags' | 'creatorTaskId'> {
  const range = rangeOf(body.cidr);
  return {
    id: randomUUID(),
    projectId: scope.projectId,
    regionId: scope.regionId,
    networkId: body.network_id,
    name: body.name,
    cidr: range.cidr,
    ipVersion: range.version,
    gatewayIp: body.gateway_ip === undefined ? firstHost(range) : body.gateway_ip,
    enableDhcp: body.enable_dhcp ?? true,
    dnsNameservers: body.dns_nameservers ?? [],
    hostRoutes: body.host_routes ?? [],
    createdAt: now,
    updatedAt: now,
  };
}

/** The columns after a patch. Null empties a list or the gateway; a null name keeps the name. @throws ClientError 400 */
function changesOf(subnet: SubnetRow, body: UpdateSubnet): Partial<SubnetRow> {
  return {
    name: body.name ?? subnet.name,
    enableDhcp: body.enable_dhcp ?? subnet.enableDhcp,
    gatewayIp: body.gateway_ip,
    dnsNameservers: body.dns_nameservers === null ? [] : body.dns_nameservers,
    hostRoutes: body.host_routes === null ? [] : body.host_routes,
    tags: patchedTags(subnet.tags, body.tags, settingsErrors(subnet.cidr, body)),
  };
}

function toResponse(subnet: SubnetView, regionName: string): Subnet {
  const tags = toTagList(subnet.tags);
  return {
    id: subnet.id,
    name: subnet.name,
    available_ips: subnet.availableIps,
    cidr: subnet.cidr,
    created_at: withZone(subnet.createdAt),
    creator_task_id: subnet.creatorTaskId,
    dns_nameservers: subnet.dnsNameservers,
    enable_dhcp: subnet.enableDhcp,
    gateway_ip: subnet.gatewayIp,
    has_router: false,
    host_routes: subnet.hostRoutes,
    ip_version: subnet.ipVersion,
    network_id: subnet.networkId,
    project_id: subnet.projectId,
    region: regionName,
    region_id: subnet.regionId,
    tags,
    metadata: tags,
    task_id: null,
    total_ips: subnet.totalIps,
    updated_at: withZone(subnet.updatedAt),
  };
}
