/**
 * Renders networks of access rules in the syntax that Ganesha's lexer accepts (measured with 4.3): a prefix has one or two
 * digits and is not 0, and an address must not be quoted. So /0 becomes its two halves, an IPv6 prefix of /120 or longer
 * becomes its addresses (at most 256), and IPv6 prefixes from /100 to /119 are rejected.
 *
 * Invariant: only networks that were parsed and formatted here reach the configuration.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { DriverError } from '../driver.ts';

interface Network {
  bytes: number[];
  prefix: number;
}

/** `1.2.3.4`, `1.2.3.0/24`, `fd00::/64`; an IPv4-mapped IPv6 network is the IPv4 one. @throws DriverError */
export function parseNetwork(text: string): Network {
  const [address = '', prefixText, ...rest] = text.split('/');
  const family = isIP(address);
  const width = family === 4 ? 32 : 128;
  const prefix = prefixText === undefined ? width : /^\d{1,3}$/.test(prefixText) ? Number(prefixText) : -1;
  if (family === 0 || address.includes('%') || rest.length > 0 || prefix < 0 || prefix > width) {
    throw refusal(text, 'is not a network');
  }
  const bytes = ipaddr.parse(address).toByteArray();
  const mapped = family === 6 && prefix >= 96 && ipaddr.fromByteArray(bytes).range() === 'ipv4Mapped';
  return mapped ? masked(bytes.slice(12), prefix - 96) : masked(bytes, prefix);
}

/** The entries of Ganesha's `Clients` that match exactly this network. @throws DriverError */
export function clientsOf(network: Network): string[] {
  const { bytes, prefix } = network;
  const width = bytes.length * 8;
  if (prefix === width) return [print(bytes)];
  if (prefix === 0) return halves(network).flatMap(clientsOf);
  if (prefix < 100) return [`${print(bytes)}/${prefix}`];
  if (prefix < 120) throw refusal(`${print(bytes)}/${prefix}`, 'is an IPv6 network between /100 and /119');
  return Array.from({ length: 2 ** (width - prefix) }, (_, i) => print([...bytes.slice(0, 15), (bytes[15] ?? 0) + i]));
}

/** Sorts the most specific network first, because Ganesha applies the first rule that matches. */
export function bySpecificity(a: Network, b: Network): number {
  return b.prefix / (b.bytes.length * 8) - a.prefix / (a.bytes.length * 8);
}

function halves({ bytes, prefix }: Network): Network[] {
  const [first = 0, ...others] = bytes;
  return [
    { bytes, prefix: prefix + 1 },
    { bytes: [first | 0x80, ...others], prefix: prefix + 1 },
  ];
}

function masked(bytes: number[], prefix: number): Network {
  const keep = (index: number) => Math.min(8, Math.max(0, prefix - index * 8));
  return { bytes: bytes.map((byte, index) => byte & (0xff << (8 - keep(index))) & 0xff), prefix };
}

function print(bytes: number[]): string {
  return ipaddr.fromByteArray(bytes).toString();
}

function refusal(network: string, why: string): DriverError {
  return new DriverError(`${JSON.stringify(network)} ${why}`, {
    customerMessage: `the access rule for ${network} cannot be applied: it ${why}`,
    retryable: false,
  });
}
