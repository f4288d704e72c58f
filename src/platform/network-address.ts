import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Four decimal numbers without leading zeros, or IPv6 without a zone. */
export function isAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes('%');
}

/**
 * The canonical form of an address or CIDR: `1.2.3.4` and `::ffff:1.2.3.4` are `1.2.3.4/32`. Null when it is neither, or
 * has host bits.
 */
export function canonicalNetwork(text: string): string | null {
  const [address = '', prefix, ...rest] = text.split('/');
  if (rest.length > 0 || !isAddress(address)) return null;
  const parsed = ipaddr.parse(address);
  const bits = parsed.kind() === 'ipv4' ? 32 : 128;
  if (prefix !== undefined && !(/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits)) return null;
  const length = prefix === undefined ? bits : Number(prefix);
  const network = (parsed.kind() === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6).networkAddressFromCIDR(`${parsed}/${length}`);
  return network.toString() === parsed.toString() ? parseNetwork(`${parsed}/${length}`).join('/') : null;
}

/** The canonical form of a host: `::ffff:1.2.3.4` and the deprecated `::1.2.3.4` are `1.2.3.4`. @throws when it is not an address */
export function canonicalAddress(text: string): string {
  return parseHost(text).toString();
}

/** Orders addresses by their numbers, IPv4 first, as PostgreSQL orders `inet`. */
export function compareAddresses(a: string, b: string): number {
  const [first, second] = [ipaddr.parse(a).toByteArray(), ipaddr.parse(b).toByteArray()];
  return first.length - second.length || Buffer.compare(Buffer.from(first), Buffer.from(second));
}

export type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type Network = readonly [address: Address, prefix: number];

/** Normalizes like `canonicalAddress`. */
export function parseHost(text: string): Address {
  const parsed = ipaddr.process(text);
  if (parsed.kind() === 'ipv4') return parsed;
  const bytes = parsed.toByteArray();
  // Excludes `::1` and the addresses of 0.0.0.0/8.
  const isCompatible = bytes.findIndex((byte) => byte !== 0) === 12;
  return isCompatible ? new ipaddr.IPv4(bytes.slice(12)) : parsed;
}

/** `10.0.0.0/8`, or `10.0.0.1` for that address alone; `::ffff:10.0.0.0/104` is `10.0.0.0/8`. */
export function parseNetwork(text: string): Network {
  const [base = '', length] = text.split('/');
  const address = ipaddr.parse(base);
  const prefix = length === undefined ? address.toByteArray().length * 8 : Number(length);
  const isMapped = address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && prefix >= 96;
  return isMapped ? [address.toIPv4Address(), prefix - 96] : [address, prefix];
}

/** Like `match` of ipaddr.js without its allocations: it runs for every member of a pool and every network. */
export function contains([base, prefix]: Network, address: Address): boolean {
  const [expected, found] = [wordsOf(base), wordsOf(address)];
  if (expected.length !== found.length) return false;
  const bits = expected.length === 4 ? 8 : 16;
  const whole = Math.floor(prefix / bits);
  for (let i = 0; i < whole; i += 1) if (expected[i] !== found[i]) return false;
  const left = prefix % bits;
  return left === 0 || (expected[whole]! ^ found[whole]!) >> (bits - left) === 0;
}

/** Four bytes of IPv4, or eight times 16 bits of IPv6. */
function wordsOf(address: Address): number[] {
  return 'octets' in address ? address.octets : address.parts;
}

/** Whether an address, with or without a zone, is in one of these networks. */
export function isInNetworks(address: string, networks: readonly string[]): boolean {
  const [bare = ''] = address.split('%');
  if (!ipaddr.isValid(bare)) return false;
  const parsed = ipaddr.process(bare);
  return networks.some((network) => contains(parseNetwork(network), parsed));
}

/** The key that the connections of a client are counted by: an IPv4 address, or the /64 network of an IPv6 address. */
export function sourceOf(address: string): string {
  if (!address.includes(':') || !ipaddr.IPv6.isValid(address)) return address;
  const parsed = ipaddr.IPv6.parse(address);
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString();
  return `${parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}

/** The lowest free host address of a network; null when all are taken. */
export function lowestFreeAddress(network: string, taken: ReadonlySet<string>): string | null {
  const [start, prefix] = ipaddr.parseCIDR(network);
  const { length } = start.toByteArray();
  const size = 2n ** BigInt(length * 8 - prefix);
  // The first and last address are not for hosts, except in networks of one or two addresses.
  const margin = size > 2n ? 1n : 0n;
  const first = numberOf(start);
  for (let number = first + margin; number < first + size - margin; number += 1n) {
    const address = textOf(number, length);
    if (!taken.has(address)) return address;
  }
  return null;
}

export function numberOf(address: Address): bigint {
  return BigInt(`0x${Buffer.from(address.toByteArray()).toString('hex')}`);
}

function textOf(number: bigint, bytes: number): string {
  const hex = number.toString(16).padStart(bytes * 2, '0');
  return ipaddr.fromByteArray([...Buffer.from(hex, 'hex')]).toString();
}

/** The network of one address: `10.0.0.1/32`, `fd00::1/128`. */
export const cidrOf = (address: string): string => `${address}/${isIP(address) === 6 ? 128 : 32}`;

/** A host as it is in a URL, where an IPv6 address has brackets. */
export const inBrackets = (host: string): string => (isIP(host) === 6 ? `[${host}]` : host);

/** host:port of a URL, with the default port of the scheme if the URL has none. */
export function hostAndPort({ host, port, protocol }: URL): string {
  return port ? host : `${host}:${protocol === 'https:' ? 443 : 80}`;
}
