/** `hosts` and `storage` of the regions file: their rules, and their values with defaults. */
import ipaddr from 'ipaddr.js';
import type { FieldError } from '../../errors/catalogue.ts';
import type { RegionView } from '../../hosts/part.ts';
import { canonicalNetwork } from '../../platform/network-address.ts';
import type { RegionConfiguration } from './schema.ts';

const defaultAddressGroups = 12;
const defaultVirtualRouterId = 100;
const lastVirtualRouterId = 255;
/** Of the API and of registries (drivers/keepalived/routers.ts). */
const singleRouters = 2;
/** Longer than a failover of PostgreSQL under Patroni, so that hosts keep serving through one. */
const defaultLeaseSeconds = 15;

/** Errors of one region. `path` ends with a dot. */
export function hostErrors(region: RegionConfiguration, path: string): FieldError[] {
  const { hosts } = region;
  if (!hosts) return [];
  const errors: FieldError[] = [];
  const named: [string, string | undefined][] = [
    ...(hosts.nfs_addresses ?? []).map((address, i): [string, string] => [`nfs_addresses.${i}`, address]),
    ['api_address', hosts.api_address],
    ['registry_address', hosts.registry_address],
  ];
  const seen = new Map<string, string>();
  for (const [name, address] of named) {
    if (address === undefined) continue;
    const message = addressError(address, region) ?? (seen.has(address) ? `equals ${seen.get(address)}` : null);
    if (message) errors.push({ path: `${path}hosts.${name}`, message });
    seen.set(address, name);
  }
  const { addressGroups, virtualRouterId } = settingsOf(region);
  if (virtualRouterId + addressGroups + singleRouters - 1 > lastVirtualRouterId) {
    const most = lastVirtualRouterId + 1 - addressGroups - singleRouters;
    const message = `must be at most ${most}, because each of the ${addressGroups} address groups, the API and the registry has an id`;
    errors.push({ path: `${path}hosts.virtual_router_id`, message });
  }
  return errors;
}

function addressError(text: string, { vip_range, vip_range_v6 }: RegionConfiguration): string | null {
  if (!ipaddr.IPv4.isValidFourPartDecimal(text) && !ipaddr.IPv6.isValid(text)) return 'must be an IP address';
  const address = ipaddr.parse(text);
  // Addresses are compared as text, and name groups in the database.
  if (address.toString() !== text) return `must be written as ${address.toString()}`;
  if (text.includes('%')) return 'must not have a zone';
  for (const range of [vip_range, vip_range_v6]) {
    if (range === undefined || canonicalNetwork(range) === null || !range.includes('/')) continue;
    const [network, prefix] = ipaddr.parseCIDR(range);
    if (network.kind() === address.kind() && address.match(network, prefix)) {
      return `must be outside ${range}, which is for load balancers`;
    }
  }
  return null;
}

function settingsOf({ hosts = {} }: RegionConfiguration): RegionView['settings'] {
  return {
    nfsAddresses: hosts.nfs_addresses ?? [],
    apiAddress: hosts.api_address ?? null,
    registryAddress: hosts.registry_address ?? null,
    addressGroups: hosts.address_groups ?? defaultAddressGroups,
    virtualRouterId: hosts.virtual_router_id ?? defaultVirtualRouterId,
    leaseSeconds: hosts.lease_seconds ?? defaultLeaseSeconds,
  };
}

/** The configuration of a region of several hosts. */
export type HostedRegion = Omit<RegionView, 'self' | 'hosts'>;

/** Null if the region has one host. */
export function hostedRegion(region: RegionConfiguration): HostedRegion | null {
  if (!region.hosts) return null;
  return {
    regionId: region.id,
    vipRange: region.vip_range ?? null,
    vipRangeV6: region.vip_range_v6 ?? null,
    storage: region.storage ?? null,
    settings: settingsOf(region),
  };
}
