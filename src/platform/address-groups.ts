/**
 * Groups of addresses that move between the hosts of a region together. The API names the host of an address, and keepalived
 * moves the groups, so both use these functions.
 */
import ipaddr from 'ipaddr.js';
import { contains, numberOf, parseNetwork } from './network-address.ts';

/** The part of a region's configuration that the groups depend on. */
interface AddressGroups {
  /** IPv4 and IPv6 networks of the addresses of load balancers. */
  vipRange: string | null;
  vipRangeV6: string | null;
  settings: { addressGroups: number };
}

/** The group of an address: its position in its range modulo the number of groups. Null: in no range of the region. */
export function addressGroupOf(text: string, region: AddressGroups): number | null {
  const address = ipaddr.parse(text);
  for (const range of [region.vipRange, region.vipRangeV6]) {
    if (range === null) continue;
    const network = parseNetwork(range);
    if (!contains(network, address)) continue;
    const position = numberOf(address) - numberOf(network[0]);
    return Number(position % BigInt(region.settings.addressGroups));
  }
  return null;
}

/** As `GET /cloudyard/v1/hosts` and reports of hosts name it. */
export function addressGroupName(group: number): string {
  return `addresses-${group}`;
}
