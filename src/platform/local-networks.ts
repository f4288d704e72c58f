/**
 * The networks that the kernel of this host delivers locally, read from its routing tables. `os.networkInterfaces`
 * does not list them all: it omits interfaces without a carrier (a container bridge without containers) and local
 * routes, and both accept connections.
 */
import { networkInterfaces } from 'node:os';
import { readExisting } from './read-or-empty.ts';

const RTF_LOCAL = 0x8000_0000;

/** Addresses and CIDRs, each once. Reads the kernel. */
export function localNetworks(): string[] {
  const listed = Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
  // A kernel without IPv6 does not have its table.
  const routed = [...localIpv4(readExisting('/proc/net/fib_trie')), ...localIpv6(readExisting('/proc/net/ipv6_route'))];
  return [...new Set([...listed.filter((address) => !address.includes('%')), ...routed])];
}

const recentMs = 1000;
let recent: { networks: string[]; at: number } | undefined;

/** The same, at most a second old, for checks of every request. */
export function recentLocalNetworks(): string[] {
  const now = performance.now();
  if (!recent || now - recent.at > recentMs) recent = { networks: localNetworks(), at: now };
  return recent.networks;
}

/** Each address is a line `|-- 10.0.0.1`, followed by a line for each of its routes: `/32 host LOCAL`. */
export function localIpv4(table: string): string[] {
  const found = new Set<string>();
  let address = '';
  for (const line of table.split('\n')) {
    address = /\|-- (\S+)$/.exec(line)?.[1] ?? address;
    const prefix = /^\s*\/(\d+) \w+ LOCAL$/.exec(line)?.[1];
    if (prefix !== undefined) found.add(`${address}/${prefix}`);
  }
  return [...found];
}

/** Destination, prefix length in hexadecimal digits, six more fields, flags, interface. */
export function localIpv6(table: string): string[] {
  return table.split('\n').flatMap((line) => {
    const [address = '', prefix = '', ...rest] = line.trim().split(/\s+/);
    const flags = Number.parseInt(rest[6] ?? '', 16);
    if (!(flags & RTF_LOCAL) || address.length !== 32) return [];
    return [`${address.match(/.{4}/g)!.join(':')}/${Number.parseInt(prefix, 16)}`];
  });
}
