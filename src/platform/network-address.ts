import ipaddr from 'ipaddr.js';

/** An address or CIDR in its one spelling: `1.2.3.4` is `1.2.3.4/32`. Null when it is neither, or has host bits. */
export function canonicalNetwork(text: string): string | null {
  const [address = '', prefix, ...rest] = text.split('/');
  if (rest.length > 0 || !(ipaddr.IPv4.isValidFourPartDecimal(address) || ipaddr.IPv6.isValid(address))) return null;
  if (address.includes('%')) return null;
  const parsed = ipaddr.parse(address);
  const bits = parsed.kind() === 'ipv4' ? 32 : 128;
  if (prefix !== undefined && !(/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits)) return null;
  const length = prefix === undefined ? bits : Number(prefix);
  const network = (parsed.kind() === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6).networkAddressFromCIDR(`${parsed}/${length}`);
  return network.toString() === parsed.toString() ? `${parsed}/${length}` : null;
}
