/**
 * Renders networks of access rules in the syntax that Ganesha's lexer accepts (measured with 4.3): a prefix has one or two
 * digits and is not 0, and an address must not be quoted. So /0 becomes its two halves, an IPv6 prefix of /120 or longer
 * becomes its addresses (at most 256), and IPv6 prefixes from /100 to /119 are rejected.
 *
 * Invariant: only networks that were parsed and formatted here reach the configuration.
 */
import ipaddr from 'ipaddr.js';
import { type Address, canonicalNetwork, type Network, parseNetwork } from '../../platform/network-address.ts';
import { DriverError } from '../driver.ts';

/** The network of an access rule. @throws DriverError */
export function accessNetwork(text: string): Network {
  const canonical = canonicalNetwork(text);
  if (canonical === null) throw refusal(text, 'is not a network');
  return parseNetwork(canonical);
}

/** The entries of Ganesha's `Clients` that match exactly this network. @throws DriverError */
export function clientsOf([address, prefix]: Network): string[] {
  const width = widthOf(address);
  if (prefix === width) return [address.toString()];
  if (prefix === 0) return width === 32 ? ['0.0.0.0/1', '128.0.0.0/1'] : ['::/1', '8000::/1'];
  const network = `${address.toString()}/${prefix}`;
  if (prefix < 100) return [network];
  if (prefix < 120) throw refusal(network, 'is an IPv6 network between /100 and /119');
  const [last = 0, ...others] = address.toByteArray().reverse();
  const addresses = Array.from({ length: 2 ** (width - prefix) }, (_, i) => [last + i, ...others].reverse());
  return addresses.map((bytes) => ipaddr.fromByteArray(bytes).toString());
}

/** Sorts the most specific network first, because Ganesha applies the first rule that matches. */
export function bySpecificity([a, prefixOfA]: Network, [b, prefixOfB]: Network): number {
  return prefixOfB / widthOf(b) - prefixOfA / widthOf(a);
}

function widthOf(address: Address): number {
  return address.kind() === 'ipv4' ? 32 : 128;
}

function refusal(network: string, why: string): DriverError {
  return new DriverError(`${JSON.stringify(network)} ${why}`, {
    customerMessage: `the access rule for ${network} cannot be applied: it ${why}`,
    retryable: false,
  });
}
