/** Decides whether this machine may connect to an address that a customer names: public addresses only, by default. */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { metadataAddresses } from '../platform/member-networks.ts';

/** Returns why connections to this address are refused, or null. */
export function refusalOfAddress(address: string): string | null {
  const [bare = ''] = address.split('%');
  if (!ipaddr.isValid(bare)) return `${address} is not an address`;
  const parsed = ipaddr.parse(bare);
  const range = parsed.range();
  if (metadataAddresses.includes(bare)) return `${bare} is not on the public internet (cloud metadata)`;
  if (range !== 'unicast') return `${bare} is not on the public internet (${inWords(range)})`;
  // Only 2000::/3 is global IPv6. Addresses that embed IPv4 (mapped, NAT64, 6to4, Teredo) have other ranges.
  const isGlobal = parsed.kind() === 'ipv4' || (parsed.toByteArray()[0]! & 0xe0) === 0x20;
  return isGlobal ? null : `${bare} is not on the public internet`;
}

/** `linkLocal` is `link local`. */
function inWords(range: string): string {
  return range.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** Returns why connections to a host are refused, a name or its address: the reason of the first refused address, or null. */
export function refusalOfAll(host: string, resolved: readonly { address: string }[]): string | null {
  const refusal = resolved.map(({ address }) => refusalOfAddress(address)).find((reason) => reason !== null);
  if (!refusal || isIP(host)) return refusal ?? null;
  return `${host} resolves to ${refusal.replace(' is', ', which is')}`;
}

/** The host, without the brackets of an IPv6 address. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1');
}
