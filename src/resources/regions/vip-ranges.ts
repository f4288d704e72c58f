/** The rules of `vip_range` and `vip_range_v6` in the regions file. */
import ipaddr from 'ipaddr.js';
import type { FieldError } from '../../errors/catalogue.ts';
import { canonicalNetwork, contains, type Network } from '../../platform/network-address.ts';
import type { RegionConfiguration } from './schema.ts';

const rules = {
  vip_range: {
    version: 4,
    example: '127.64.0.0/16',
    smallestPrefix: 8,
    withoutHosts: ['multicast, broadcast or unspecified', /^(multicast|broadcast|unspecified)$/],
  },
  vip_range_v6: {
    version: 6,
    example: 'fd00:77::/64',
    smallestPrefix: 32,
    withoutHosts: ['multicast', /^multicast$/],
  },
} as const;
type Field = keyof typeof rules;

/** Errors of the ranges of one region. `path` ends with a dot. */
export function vipRangeErrors(region: RegionConfiguration, before: RegionConfiguration[], path: string): FieldError[] {
  return (['vip_range', 'vip_range_v6'] as const).flatMap((field) => {
    const text = region[field];
    const message = text === undefined ? null : errorOf(field, text, before);
    return message ? [{ path: `${path}${field}`, message }] : [];
  });
}

function errorOf(field: Field, text: string, before: RegionConfiguration[]): string | null {
  const { version, example, smallestPrefix, withoutHosts } = rules[field];
  const network = networkOf(text, version);
  if (!network) return `must be an IPv${version} network such as ${example}, without host bits`;
  const [address, prefix] = network;
  if (prefix < smallestPrefix) return `must be a network of /${smallestPrefix} or longer`;
  if (withoutHosts[1].test(address.range())) return `must not be a ${withoutHosts[0]} network`;
  const overlapping = before.find(({ [field]: other = '' }) => {
    const taken = networkOf(other, version);
    return taken && contains([taken[0], Math.min(prefix, taken[1])], address);
  });
  return overlapping
    ? `overlaps ${overlapping[field]} of the region ${JSON.stringify(overlapping.display_name)}`
    : null;
}

function networkOf(text: string, version: 4 | 6): Network | null {
  if (!text.includes('/') || canonicalNetwork(text) === null) return null;
  const network = ipaddr.parseCIDR(text);
  return network[0].kind() === `ipv${version}` ? network : null;
}
