/** Decides whether this machine may connect to an address that a customer names: public addresses only, by default. */
import ipaddr from 'ipaddr.js';

/** Returns why connections to this address are refused, or null. */
export function refusalOfAddress(address: string): string | null {
  const [bare = ''] = address.split('%');
  if (!ipaddr.isValid(bare)) return `${address} is not an address`;
  const parsed = ipaddr.parse(bare);
  const range = parsed.range();
  if (range !== 'unicast') return `${bare} is not on the public internet (${inWords(range)})`;
  // Only 2000::/3 is global IPv6. Addresses that embed IPv4 (mapped, NAT64, 6to4, Teredo) have other ranges.
  const isGlobal = parsed.kind() === 'ipv4' || (parsed.toByteArray()[0]! & 0xe0) === 0x20;
  return isGlobal ? null : `${bare} is not on the public internet`;
}

/** `linkLocal` is `link local`. */
function inWords(range: string): string {
  return range.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** Returns why connections to a resolved name are refused: the reason of the first refused address, or null. */
export function refusalOfAll(host: string, addresses: readonly string[]): string | null {
  const refusal = addresses.map(refusalOfAddress).find((reason) => reason !== null);
  return refusal ? `${host} resolves to ${refusal.replace(' is', ', which is')}` : null;
}
