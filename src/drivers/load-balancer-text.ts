/** Pure: which text a proxy configuration can contain. The rules refuse everything else, and `haproxy/quote.ts` throws. */
import { isIP } from 'node:net';
import { isAddress } from '../platform/network-address.ts';

/** HAProxy reads lines of up to 2,048 bytes. */
const maxTextBytes = 512;

/** IPv4, or IPv6 without a zone. */
export function isPlainAddress(text: unknown): text is string {
  return typeof text === 'string' && isAddress(text);
}

/** An address, or an address and a prefix length; bits after the prefix may be set. */
export function isNetwork(text: unknown): text is string {
  if (typeof text !== 'string') return false;
  const [host = '', prefix, ...rest] = text.split('/');
  if (rest.length > 0 || !isPlainAddress(host)) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (isIP(host) === 6 ? 128 : 32));
}

/** A netmask such as 255.255.255.0 for a load balancer with an IPv4 address, a prefix length for one with IPv6. */
export function isNetmask(text: string, loadBalancerAddress: string): boolean {
  if (isIP(loadBalancerAddress) === 6) return /^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= 128;
  if (isIP(text) !== 4) return false;
  const bits = text
    .split('.')
    .map((part) => Number(part).toString(2).padStart(8, '0'))
    .join('');
  return /^1+0*$/.test(bits);
}

/** Text without a grammar of its own, such as a user name: it is quoted, so only control characters are refused. */
export function isFreeText(text: unknown): text is string {
  if (typeof text !== 'string' || Buffer.byteLength(text) > maxTextBytes) return false;
  // oxlint-disable-next-line no-control-regex
  return !/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(text) && text.isWellFormed();
}

/** A name that cannot be quoted, for example between parentheses. */
export function isToken(text: unknown): text is string {
  return typeof text === 'string' && /^[\w.-]{1,128}$/.test(text);
}

/** A token of RFC 9110, without the single quote, which would end the quotes of HAProxy. */
export function isHeaderName(text: unknown): text is string {
  return typeof text === 'string' && /^[\w!#$%&*+.^`|~-]{1,255}$/.test(text);
}

/** The characters of DNS names and underscores; labels are not checked. */
export function isHostName(text: unknown): text is string {
  return typeof text === 'string' && /^[A-Za-z0-9._-]{1,253}$/.test(text);
}

/** HTTP statuses and ranges of them, such as `200,300-302`. 255 characters hold 64 statuses. */
export function isStatusCodes(text: unknown): text is string {
  if (typeof text !== 'string' || !/^[1-5]\d\d(-[1-5]\d\d)?(,[1-5]\d\d(-[1-5]\d\d)?){0,63}$/.test(text)) return false;
  return text.split(',').every((part) => {
    const [first, last = first] = part.split('-');
    return first! <= last!;
  });
}

/** A path with an optional query. `quote.requestPath` encodes what a request line cannot contain. */
export function isRequestPath(text: unknown): text is string {
  return isFreeText(text) && text.startsWith('/');
}
