/**
 * The only way for text into the configuration of HAProxy and nginx and into HAProxy's runtime socket.
 *
 * Invariant: text with a grammar (ids, addresses, numbers, cookie names, status codes) is checked against it; free text
 * (a user name, a hash, a path) has no control characters and is quoted. HAProxy interprets nothing within strong
 * quotes, so only the quote itself is escaped. The runtime socket has no quotes, so its words have few characters.
 *
 * Failure modes: a permanent DriverError that names the field. `load-balancer-rules.ts` refuses the same text earlier.
 */
import { inBrackets } from '../../platform/network-address.ts';
import { DriverError } from '../driver.ts';
import { isId } from '../id-files.ts';
import { isFreeText, isHeaderName, isNetwork, isPlainAddress, isRequestPath, isToken } from '../load-balancer-text.ts';

/** HAProxy's timers are 31 bits of milliseconds. */
const MAX_MS = 2_147_483_647;

/** A permanent error about a value that cannot be written into a configuration. */
export function invalid(field: string, value: unknown): DriverError {
  return new DriverError(`invalid ${field} for a proxy configuration: ${JSON.stringify(value)?.slice(0, 200)}`, {
    customerMessage: `the load balancer does not support this ${field}`,
    retryable: false,
  });
}

/** @throws DriverError unless it is a UUID */
export function id(text: string): string {
  if (typeof text !== 'string' || !isId(text)) throw invalid('id', text);
  return text;
}

/** An address as HAProxy and nginx write it before a colon and a port. */
export function address(text: string): string {
  if (!isPlainAddress(text)) throw invalid('address', text);
  return inBrackets(text);
}

/** `address:port`, as both programs read it. @throws DriverError */
export function endpoint(host: string, port: number): string {
  return `${address(host)}:${whole('port', port, 1, 65_535)}`;
}

/** An address or a CIDR, unquoted. @throws DriverError */
export function network(text: string): string {
  if (!isNetwork(text)) throw invalid('allowed network', text);
  return text;
}

/** An integer from `min` to `max`. @throws DriverError */
export function whole(field: string, value: number, min: number, max: number): number {
  if (!Number.isSafeInteger(value) || value < min || value > max) throw invalid(field, value);
  return value;
}

/** 0 means no timeout; the longest that HAProxy supports is 24 days. */
export function milliseconds(field: string, value: number): string {
  const ms = Math.min(whole(field, value, 0, Number.MAX_SAFE_INTEGER), MAX_MS);
  return `${ms === 0 ? MAX_MS : ms}ms`;
}

/** One word of HAProxy's configuration. Words cannot be empty. */
export function word(field: string, text: string): string {
  if (!isFreeText(text) || text === '') throw invalid(field, text);
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Like `word`, where HAProxy would expand a log format. */
export function literalFormat(field: string, text: string): string {
  return word(field, text.replaceAll('%', '%%'));
}

/** 1 to 128 letters, digits, `_`, `.` and `-`, unquoted. @throws DriverError */
export function token(field: string, text: string): string {
  if (!isToken(text)) throw invalid(field, text);
  return text;
}

/** The name of a header or cookie, or a field of a distinguished name, between parentheses within strong quotes. */
export function l7Key(text: string): string {
  if (!isHeaderName(text)) throw invalid('key', text);
  return text;
}

/** A request line has no spaces and only ASCII, so other characters are percent-encoded. */
export function requestPath(text: string): string {
  if (!isRequestPath(text)) throw invalid('url path', text);
  const encoded = text.replaceAll(/[^\u0021-\u007e]+/gu, (part) => encodeURIComponent(part));
  return word('url path', encoded);
}

/** A path below the data directory. The words of HAProxy and nginx could contain more, the runtime socket could not. */
export function path(text: string): string {
  if (!/^[\w./@+:,-]+$/.test(text)) throw invalid('data directory', text);
  return text;
}

/** One command for the runtime socket. Spaces separate its words, and `;` would start another command. */
export function command(...words: (string | number)[]): string {
  for (const each of words) {
    if (!/^[\w./@+:,[\]-]+$/.test(String(each))) throw invalid('runtime command', each);
  }
  return words.join(' ');
}
