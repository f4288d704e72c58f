/**
 * Pure: the virtual routers of a region. Each moves one address group: some addresses of load balancers, the address of the API,
 * or that of registries.
 *
 * Priorities spread the groups: the first choice of group g is host g modulo the number of hosts, and the groups of a dead
 * host have different second choices. Hosts that drain are the last choice.
 */
import type { HostView, RegionView } from '../../hosts/part.ts';
import { addressGroupName, addressGroupOf } from '../../platform/address-groups.ts';

export type Service = 'balancers' | 'api' | 'registry';

export interface VirtualRouter {
  name: string;
  /** The id in VRRP. */
  id: number;
  /** The service that must work where the addresses are. */
  service: Service;
  addresses: string[];
}

const HIGHEST_PRIORITY = 250;
const LOWEST_PRIORITY = 10;

/** The same on every host of the region: one router for each address group, then those of the API and of registries. */
export function routersOf(region: RegionView, balancerAddresses: Iterable<string>): VirtualRouter[] {
  const { addressGroups, virtualRouterId, apiAddress, registryAddress } = region.settings;
  const addresses = Map.groupBy(balancerAddresses, (address) => addressGroupOf(address, region));
  const groups = Array.from({ length: addressGroups }, (_, group) => ({
    name: addressGroupName(group),
    id: virtualRouterId + group,
    service: 'balancers' as const,
    addresses: (addresses.get(group) ?? []).sort(),
  }));
  const next = virtualRouterId + addressGroups;
  const single = (name: 'api' | 'registry', id: number, address: string | null): VirtualRouter[] =>
    address === null ? [] : [{ name, id, service: name, addresses: [address] }];
  return [...groups, ...single('api', next, apiAddress), ...single('registry', next + 1, registryAddress)];
}

/** The names of the hosts of a region in the order in which they take a router. */
export function preferenceOrder({ id }: Pick<VirtualRouter, 'id'>, { hosts, settings }: RegionView): string[] {
  const number = id - settings.virtualRouterId;
  const isLast = ({ state }: HostView) => state !== 'active';
  const [active, draining] = [hosts.filter((host) => !isLast(host)), hosts.filter(isLast)];
  return [...rotated(active, number), ...rotated(draining, number)].map(({ name }) => name);
}

/** Groups with the same first host have different second ones. */
function rotated<T>(list: T[], number: number): T[] {
  const first = number % list.length;
  const others = list.filter((_, at) => at !== first);
  const second = Math.floor(number / list.length) % others.length;
  return [...list.slice(first, first + 1), ...others.slice(second), ...others.slice(0, second)];
}

/** Far apart, because the host with the next priority is the first to claim the router, by a fraction of the interval. */
export function priorityOf(router: Pick<VirtualRouter, 'id'>, region: RegionView): number {
  const rank = preferenceOrder(router, region).indexOf(region.self);
  const step = (HIGHEST_PRIORITY - LOWEST_PRIORITY) / Math.max(region.hosts.length - 1, 1);
  return rank < 0 ? 1 : Math.floor(HIGHEST_PRIORITY - rank * step);
}
