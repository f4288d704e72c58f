import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Four decimal numbers without leading zeros, or IPv6 without a zone. */
export function isAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes('%');
}

/** An address or CIDR in its one spelling: `1.2.3.4` is `1.2.3.4/32`. Null when it is neither, or has host bits. */
export function canonicalNetwork(text: string): string | null {
  const [address = '', prefix, ...rest] = text.split('/');
  if (rest.length > 0 || !isAddress(address)) return null;
  const parsed = ipaddr.parse(address);
  const bits = parsed.kind() === 'ipv4' ? 32 : 128;
  if (prefix !== undefined && !(/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits)) return null;
  const length = prefix === undefined ? bits : Number(prefix);
  const network = (parsed.kind() === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6).networkAddressFromCIDR(`${parsed}/${length}`);
  return network.toString() === parsed.toString() ? `${parsed}/${length}` : null;
}

/** The first address of an IPv4 network that a host can have and nobody has; null when all are taken. */
export function lowestFreeAddress(network: string, taken: ReadonlySet<string>): string | null {
  const [start, prefix] = ipaddr.IPv4.parseCIDR(network);
  const size = 2 ** (32 - prefix);
  // The ends of a network are not for hosts, but for those so small that they are nothing but ends.
  const margin = size > 2 ? 1 : 0;
  const first = start.toByteArray().reduce((number, byte) => number * 256 + byte, 0);
  for (let number = first + margin; number < first + size - margin; number++) {
    const address = [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join('.');
    if (!taken.has(address)) return address;
  }
  return null;
}

/** host:port of a URL, also where the port is the scheme's own and not shown. */
export function hostAndPort({ host, port, protocol }: URL): string {
  return port ? host : `${host}:${protocol === 'https:' ? 443 : 80}`;
}
