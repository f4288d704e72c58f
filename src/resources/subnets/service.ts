/** The rules of subnets. Subnets live in rows alone, so every change is done with its transaction. */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import ipaddr from 'ipaddr.js';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { ClientError, invalidInput, inUse, notFound } from '../../errors/catalogue.ts';
import type { FieldError } from '../../errors/catalogue.ts';
import type { Idempotency } from '../../idempotency/idempotency.ts';
import { withZone } from '../../platform/clock.ts';
import type { Clock } from '../../platform/clock.ts';
import { postgresCode } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import { canonicalNetwork } from '../../platform/network-address.ts';
import type { Quota } from '../../quota/quota.ts';
import { tagFilterOf } from '../../tags/filter.ts';
import { mergeTags, newTags, presentTags, replaceTags, sameTags } from '../../tags/tags.ts';
import type { CreateTags } from '../../tags/tags.ts';
import type { ResourceKey, Tasks } from '../../tasks/tasks.ts';
import type { CreateSubnet, ListSubnets, Subnet, SubnetCollection, UpdateSubnet } from './schema.ts';
import * as store from './store.ts';
import type { SubnetRow, SubnetView } from './store.ts';

export interface SubnetsDeps {
  db: Db;
  clock: Clock;
  tasks: Tasks;
  quota: Quota;
  idempotency: Idempotency;
}

export type Subnets = ReturnType<typeof createSubnets>;
type TaskIds = { tasks: string[] };

const foreignKeyViolation = '23503';

export function createSubnets(deps: SubnetsDeps) {
  const { db, clock, tasks, quota, idempotency } = deps;

  const view = async (on: Db | Tx, scope: Scope, id: string): Promise<SubnetView> => {
    const subnet = await store.view(on, scope, id);
    if (!subnet) throw notFound('subnet', id);
    return subnet;
  };

  return {
    async create(context: RequestContext, scope: Scope, body: CreateSubnet): Promise<TaskIds> {
      const tags = newTags(body.tags ?? body.metadata);
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const errors = faultsOf(body);
        if (!(await store.lockNetwork(tx, scope, body.network_id))) {
          const message = `network ${body.network_id} was not found in this project and region`;
          errors.push({ path: 'network_id', message });
        }
        if (errors.length > 0) throw invalidInput(errors);
        const taskId = randomUUID();
        const subnet = newSubnet(scope, body, clock.now());
        await requireRoom(tx, subnet);
        await store.insert(tx, { ...subnet, tags, creatorTaskId: taskId });
        await tasks.recordFinished(tx, context, {
          id: taskId,
          type: 'create_subnet',
          key: keyOf(subnet),
          projectId: subnet.projectId,
          generation: 1,
          createdResources: { subnets: [subnet.id] },
        });
        await quota.reserve(tx, scope, { subnet_count: 1 });
        return { tasks: [taskId] };
      });
    },

    async list(scope: Scope, filter: ListSubnets): Promise<SubnetCollection> {
      const { count, rows } = await store.list(db, scope, filter, tagFilterOf(filter));
      return { count, results: rows.map((row) => present(row, scope.regionName)) };
    },

    async get(scope: Scope, id: string): Promise<Subnet> {
      return present(await view(db, scope, id), scope.regionName);
    },

    async update(context: RequestContext, scope: Scope, id: string, body: UpdateSubnet): Promise<Subnet> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const subnet = await store.lock(tx, scope, id, 'no key update');
        if (!subnet) throw notFound('subnet', id);
        const errors = settingsFaults(subnet.cidr, body);
        if (errors.length > 0) throw invalidInput(errors);
        const changes = changesOf(subnet, body);
        if (Object.keys(changes).length > 0) await store.update(tx, id, { ...changes, updatedAt: clock.now() });
        return present(await view(tx, scope, id), scope.regionName);
      });
    },

    async replaceTags(context: RequestContext, scope: Scope, id: string, tags: CreateTags): Promise<void> {
      await idempotency.auditedTransaction(db, context, async (tx) => {
        const subnet = await store.lock(tx, scope, id, 'no key update');
        if (!subnet) throw notFound('subnet', id);
        const replaced = replaceTags(subnet.tags, tags);
        if (!sameTags(replaced, subnet.tags)) {
          await store.update(tx, id, { tags: replaced, updatedAt: clock.now() });
        }
      });
    },

    async delete(context: RequestContext, scope: Scope, id: string): Promise<TaskIds> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const subnet = await store.lock(tx, scope, id, 'update');
        if (!subnet) throw notFound('subnet', id);
        const uses = await store.uses(tx, id);
        if (uses.length > 0) throw inUse('subnet', id, uses);
        await store.remove(tx, id).catch((error: unknown) => {
          throw postgresCode(error) === foreignKeyViolation ? inUse('subnet', id, []) : error;
        });
        const done = { type: 'delete_subnet', key: keyOf(subnet), projectId: subnet.projectId, generation: 1 };
        const taskId = await tasks.recordFinished(tx, context, done);
        await quota.release(tx, scope, { subnet_count: 1 });
        return { tasks: [taskId] };
      });
    },
  };
}

/** @throws ClientError 409 when another subnet of the network has some of the addresses. Lock the network first. */
async function requireRoom(tx: Tx, subnet: { networkId: string; cidr: string }): Promise<void> {
  const other = await store.overlapping(tx, subnet.networkId, subnet.cidr);
  if (!other) return;
  throw new ClientError(
    'Conflict',
    `${subnet.cidr} overlaps ${other.cidr}, which subnet ${other.id} of the network has`,
  );
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;
interface Range {
  cidr: string;
  address: Address;
  prefix: number;
  version: 4 | 6;
}

/** `text` is an address or a network without host bits: the schema has seen to that. */
function rangeOf(text: string): Range {
  const cidr = canonicalNetwork(text)!;
  const [address, prefix] = ipaddr.parseCIDR(cidr);
  return { cidr, address, prefix, version: address.kind() === 'ipv4' ? 4 : 6 };
}

/** Null for what is no address, spelled in the one usual way (no octal, no zone). */
function addressOf(text: string): Address | null {
  return !text.includes('/') && canonicalNetwork(text) !== null ? ipaddr.parse(text) : null;
}

const smallestPrefix = 8;
/** Longer ones leave no room for a gateway and a host. */
const largestPrefix = { 4: 30, 6: 126 };

function faultsOf(body: CreateSubnet): FieldError[] {
  const errors: FieldError[] = [];
  const { address, prefix, version } = rangeOf(body.cidr);
  if (prefix < smallestPrefix || prefix > largestPrefix[version]) {
    const message = `must have a prefix of /${smallestPrefix} to /${largestPrefix[version]}, and this is /${prefix}`;
    errors.push({ path: 'cidr', message });
  }
  const range = address.range();
  if (range === 'multicast' || range === 'loopback') {
    errors.push({ path: 'cidr', message: `is a ${range} network, where no host can be` });
  }
  if (body.ip_version !== undefined && body.ip_version !== version) {
    errors.push({ path: 'ip_version', message: `must be ${version}, as ${body.cidr} is an IPv${version} network` });
  }
  return [...errors, ...settingsFaults(body.cidr, body)];
}

type Settings = Pick<UpdateSubnet, 'gateway_ip' | 'dns_nameservers' | 'host_routes'>;

function settingsFaults(cidr: string, { gateway_ip, dns_nameservers, host_routes }: Settings): FieldError[] {
  const range = rangeOf(cidr);
  const errors: FieldError[] = [];
  const note = (path: string, message: string | null) => {
    if (message !== null) errors.push({ path, message });
  };
  if (gateway_ip) note('gateway_ip', gatewayFault(range, gateway_ip));
  for (const [i, server] of (dns_nameservers ?? []).entries()) {
    note(`dns_nameservers.${i}`, addressFault(range, server));
  }
  for (const [i, { destination, nexthop }] of (host_routes ?? []).entries()) {
    note(`host_routes.${i}.destination`, destinationFault(range, destination));
    note(`host_routes.${i}.nexthop`, addressFault(range, nexthop));
  }
  return errors;
}

function addressFault({ version }: Range, text: string): string | null {
  const address = addressOf(text);
  return address?.kind() === `ipv${version}` ? null : `must be an IPv${version} address, as the subnet's are`;
}

function destinationFault({ version }: Range, text: string): string | null {
  return rangeOf(text).version === version ? null : `must be an IPv${version} network, as the subnet is`;
}

function gatewayFault({ cidr, address: first, prefix, version }: Range, text: string): string | null {
  const address = addressOf(text);
  const inside =
    address?.kind() === first.kind() && address.match([first, prefix] as [ipaddr.IPv4 & ipaddr.IPv6, number]);
  if (!inside) return `must be an address of ${cidr}`;
  if (version === 6) return null;
  const ends = [first.toString(), ipaddr.IPv4.broadcastAddressFromCIDR(cidr).toString()];
  return ends.includes(address.toString()) ? `must be a host address of ${cidr}, not its first or last` : null;
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

/** What a patch changes. Null empties what can be empty, and leaves a name as it is. */
function changesOf(subnet: SubnetRow, body: UpdateSubnet): Partial<SubnetRow> {
  const wanted: Partial<SubnetRow> = {
    name: body.name ?? subnet.name,
    enableDhcp: body.enable_dhcp ?? subnet.enableDhcp,
    gatewayIp: body.gateway_ip === undefined ? subnet.gatewayIp : body.gateway_ip,
    dnsNameservers: body.dns_nameservers === undefined ? subnet.dnsNameservers : (body.dns_nameservers ?? []),
    hostRoutes: body.host_routes === undefined ? subnet.hostRoutes : (body.host_routes ?? []),
  };
  const tags = body.tags === undefined ? subnet.tags : mergeTags(subnet.tags, body.tags);
  const changed = Object.entries(wanted).filter(
    ([field, value]) => !isDeepStrictEqual(value, subnet[field as keyof SubnetRow]),
  );
  return { ...Object.fromEntries(changed), ...(!sameTags(tags, subnet.tags) && { tags }) };
}

function keyOf(subnet: Pick<SubnetRow, 'id' | 'regionId'>): ResourceKey {
  return { resource: 'subnet', id: subnet.id, regionId: subnet.regionId };
}

function present(subnet: SubnetView, regionName: string): Subnet {
  const tags = presentTags(subnet.tags);
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
