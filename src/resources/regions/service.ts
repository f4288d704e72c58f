/** Regions: the contents of the regions file, and when each region was first seen. */
import { type FieldError, errorsOfRepeated, notFound } from '../../errors/catalogue.ts';
import { type Clock, withZone } from '../../platform/clock.ts';
import { type Db, transaction } from '../../platform/db.ts';
import type { MemberNetworks } from '../../platform/member-networks.ts';
import { canonicalNetwork } from '../../platform/network-address.ts';
import type { OwnPort } from '../../platform/own-ports.ts';
import type { FileShareTypeName } from '../file-shares/schema.ts';
import { type Collection, pageOf } from '../service-kit.ts';
import type { VolumeTypeName } from '../volumes/schema.ts';
import { type HostedRegion, hostedRegion, hostErrors } from './host-configuration.ts';
import type { ListRegions, LoadBalancerFlavor, Region, RegionConfiguration } from './schema.ts';
import * as store from './store.ts';
import { vipRangeErrors } from './vip-ranges.ts';

const defaultLimit = 100;

export interface RegionFacts {
  id: number;
  name: string;
  fileShareTypes: FileShareTypeName[];
  volumeTypes: VolumeTypeName[];
  /** The addresses of load balancers; null: the region has no load balancers. */
  vipRange: string | null;
  /** Their IPv6 addresses; null: the region has none. */
  vipRangeV6: string | null;
  /** Null: the region has one host. */
  hosted: HostedRegion | null;
  /** The addresses of its NFS groups; null: file shares are served by one host. */
  nfsAddresses: string[] | null;
  /** The first one is the default. */
  loadBalancerFlavors: LoadBalancerFlavor[];
}

/** Those of the official API. */
const defaultFlavors: LoadBalancerFlavor[] = [
  { name: 'lb1-1-2', vcpus: 1, ram: 2048 },
  { name: 'lb1-2-4', vcpus: 2, ram: 4096 },
  { name: 'lb1-4-8', vcpus: 4, ram: 8192 },
];

export type Regions = Awaited<ReturnType<typeof loadRegions>>;

/** Records regions that are new in the file. The file is read at the start only, so the result stays in memory. */
export async function loadRegions(db: Db, clock: Clock, configuration: RegionConfiguration[]) {
  const since = await transaction(db, async (tx) => {
    for (const region of configuration) await store.upsert(tx, region.id, region.display_name, clock.now());
    return store.createdAt(tx);
  });
  const regions = new Map(configuration.map((region) => [region.id, region]));
  const facts = new Map(configuration.map((region) => [region.id, factsOf(region)]));
  const toResponse = (region: RegionConfiguration, showVolumeTypes = false): Region => ({
    ...regionResponse(region, facts.get(region.id)!, since.get(region.id)!),
    ...(showVolumeTypes && { available_volume_types: facts.get(region.id)!.volumeTypes }),
  });
  return {
    /** Null if the region does not exist. The id is undefined if the path of a request is invalid. */
    get: (id: number | undefined) => (id === undefined ? null : (facts.get(id) ?? null)),
    /** The name for people, also of a region that the file no longer has. */
    nameOf: (id: number) => facts.get(id)?.name ?? `region ${id}`,
    all: () => [...facts.values()],
    list(filter: ListRegions): Collection<Region> {
      const wanted = filter.display_name?.toLowerCase();
      const found = [...regions.values()]
        // No region runs containers or inference: Cloudyard has neither.
        .filter((region) => !filter.product && (!wanted || region.display_name.toLowerCase() === wanted))
        .map((region) => toResponse(region, filter.show_volume_types))
        .sort(orders[filter.order_by ?? 'created_at.desc']);
      return pageOf(found, filter, defaultLimit);
    },
    show(id: number, showVolumeTypes?: boolean): Region {
      const region = regions.get(id);
      if (!region) throw notFound('region', id);
      return toResponse(region, showVolumeTypes);
    },
  };
}

/** Reports duplicate ids and names, invalid networks, and overlapping ranges: one process may bind the addresses of several regions. */
export function checkRegions(configuration: RegionConfiguration[]): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<number | string>();
  for (const [i, region] of configuration.entries()) {
    for (const name of ['id', 'display_name'] as const) {
      if (seen.has(region[name])) errors.push({ path: `regions.${i}.${name}`, message: 'is listed twice' });
      seen.add(region[name]);
    }
    const path = `regions.${i}.`;
    errors.push(...vipRangeErrors(region, configuration.slice(0, i), path), ...hostErrors(region, path));
    errors.push(...flavorNameErrors(region, path), ...memberNetworkErrors(region, path));
  }
  return errors;
}

function flavorNameErrors({ load_balancer_flavors: flavors = [] }: RegionConfiguration, path: string): FieldError[] {
  const names = flavors.map(({ name }) => name);
  return errorsOfRepeated(names, (i) => ({
    path: `${path}load_balancer_flavors.${i}.name`,
    message: 'is listed twice',
  }));
}

function memberNetworkErrors(region: RegionConfiguration, path: string): FieldError[] {
  const message = 'must be an address or a network such as 10.0.0.0/8 or fd00::/8, without host bits';
  return (['member_networks', 'member_networks_denied'] as const).flatMap((name) =>
    (region[name] ?? []).flatMap((text, i) =>
      canonicalNetwork(text) === null ? [{ path: `${path}${name}.${i}`, message }] : [],
    ),
  );
}

/** By region, for `createMemberRules`. `portsAmongHosts`: where the hosts of a region trust each other's addresses. */
export function memberNetworksOf(
  configuration: RegionConfiguration[],
  portsAmongHosts: readonly OwnPort[],
): Map<number, MemberNetworks> {
  return new Map(
    configuration.map(({ id, member_networks: allowed, member_networks_denied: denied, hosts }) => [
      id,
      { allowed, denied, ...(hosts && { deniedPorts: portsAmongHosts }) },
    ]),
  );
}

const byText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
const orders = {
  'created_at.asc': (a: Region, b: Region) => byText(a.created_at, b.created_at) || a.id - b.id,
  'created_at.desc': (a: Region, b: Region) => byText(b.created_at, a.created_at) || b.id - a.id,
  'display_name.asc': (a: Region, b: Region) => byText(a.display_name, b.display_name),
  'display_name.desc': (a: Region, b: Region) => byText(b.display_name, a.display_name),
};

function factsOf(region: RegionConfiguration): RegionFacts {
  return {
    id: region.id,
    name: region.display_name,
    fileShareTypes: region.file_share_types ?? ['standard'],
    volumeTypes: region.volume_types ?? ['standard'],
    vipRange: region.vip_range ?? null,
    vipRangeV6: region.vip_range_v6 ?? null,
    hosted: hostedRegion(region),
    nfsAddresses: region.hosts && region.storage ? (region.hosts.nfs_addresses ?? []) : null,
    loadBalancerFlavors: region.load_balancer_flavors ?? defaultFlavors,
  };
}

function regionResponse(region: RegionConfiguration, { fileShareTypes }: RegionFacts, createdAt: Date): Region {
  return {
    id: region.id,
    access_level: 'core',
    available_volume_types: null,
    coordinates: region.coordinates ?? null,
    country: region.country,
    created_at: withZone(createdAt),
    created_on: withZone(createdAt),
    ddos_endpoint_id: null,
    display_name: region.display_name,
    endpoint_type: 'public',
    external_network_id: null,
    file_share_types: fileShareTypes,
    has_ai: false,
    has_ai_gpu: false,
    has_baremetal: false,
    has_basic_vm: false,
    has_dbaas: false,
    has_ddos: false,
    has_k8s: false,
    has_kvm: false,
    has_sfs: fileShareTypes.length > 0,
    keystone_id: region.id,
    keystone_name: region.display_name,
    metrics_database_id: null,
    slug: region.display_name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-'),
    state: 'ACTIVE',
    task_id: null,
    vlan_physical_network: '',
    zone: region.zone ?? null,
  };
}
