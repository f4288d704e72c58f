/** What a customer may make this machine connect to: addresses of the public internet, unless the operator allows more. */
import ipaddr from 'ipaddr.js';

/** Why this address may not be connected to, in words; null when it may. */
export function refusalOfAddress(address: string): string | null {
  const [bare = ''] = address.split('%');
  if (!ipaddr.isValid(bare)) return `${address} is no address`;
  const parsed = ipaddr.parse(bare);
  const range = parsed.range();
  if (range !== 'unicast') return `${bare} is not on the public internet (${inWords(range)})`;
  // Of IPv6 only 2000::/3 is. What carries an IPv4 address (mapped, NAT64, 6to4, Teredo) has a range of its own.
  const isGlobal = parsed.kind() === 'ipv4' || (parsed.toByteArray()[0]! & 0xe0) === 0x20;
  return isGlobal ? null : `${bare} is not on the public internet`;
}

/** `linkLocal` is `link local`. */
function inWords(range: string): string {
  return range.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** Why a name that was looked up may not be connected to: one of its addresses may not. Null when all may. */
export function refusalOfAll(host: string, addresses: readonly string[]): string | null {
  const refusal = addresses.map(refusalOfAddress).find((reason) => reason !== null);
  return refusal ? `${host} leads to ${refusal.replace(' is', ', which is')}` : null;
}
