/**
 * The only way for a string into HAProxy's configuration, its runtime socket or nginx's configuration.
 *
 * Everything that has a grammar (ids, addresses, numbers, cookie names, status codes) is checked against it and throws;
 * what is free text (a user's name, its hash, a path) is refused control characters and put in the quotes of the
 * reader: within HAProxy's strong quotes nothing is interpreted, so only the quote itself has to be said another way.
 * The runtime socket knows no quotes at all: there a word of any other character than these few is refused.
 *
 * How it fails: a terminal DriverError that names the field; the API refuses the same things earlier, with 400.
 */
import { isIP } from 'node:net';
import { DriverError } from '../driver.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** HAProxy reads lines of up to 2,048 bytes. */
const LONGEST_TEXT = 512;
/** HAProxy's timers are 31 bits of milliseconds. */
const LONGEST_MS = 2_147_483_647;

export function unfit(field: string, value: unknown): DriverError {
  return new DriverError(`${field} cannot be put into a configuration: ${JSON.stringify(value)?.slice(0, 200)}`, {
    customerMessage: `The load balancer does not take this ${field}.`,
    retryable: false,
  });
}

export function isId(text: string): boolean {
  return UUID.test(text);
}

export function id(text: string): string {
  if (typeof text !== 'string' || !isId(text)) throw unfit('id', text);
  return text;
}

export function isPlainAddress(text: unknown): text is string {
  return typeof text === 'string' && isIP(text) !== 0 && !text.includes('%');
}

/** An address as HAProxy and nginx want it before a colon and a port. */
export function address(text: string): string {
  if (!isPlainAddress(text)) throw unfit('address', text);
  return isIP(text) === 6 ? `[${text}]` : text;
}

export function endpoint(host: string, port: number): string {
  return `${address(host)}:${whole('port', port, 1, 65_535)}`;
}

export function isNetwork(text: unknown): text is string {
  if (typeof text !== 'string') return false;
  const [host = '', prefix, ...rest] = text.split('/');
  if (rest.length > 0 || !isPlainAddress(host)) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (isIP(host) === 6 ? 128 : 32));
}

export function network(text: string): string {
  if (!isNetwork(text)) throw unfit('allowed network', text);
  return text;
}

export function whole(field: string, value: number, least: number, most: number): number {
  if (!Number.isSafeInteger(value) || value < least || value > most) throw unfit(field, value);
  return value;
}

/** 0 stands for no timeout at all: HAProxy's longest is 24 days. */
export function milliseconds(field: string, value: number): string {
  const ms = Math.min(whole(field, value, 0, Number.MAX_SAFE_INTEGER), LONGEST_MS);
  return `${ms === 0 ? LONGEST_MS : ms}ms`;
}

export function isFreeText(text: unknown): text is string {
  if (typeof text !== 'string' || Buffer.byteLength(text) > LONGEST_TEXT) return false;
  // oxlint-disable-next-line no-control-regex
  return !/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(text) && text.isWellFormed();
}

/** One word of HAProxy's configuration, whatever it holds; it has no empty ones. */
export function word(field: string, text: string): string {
  if (!isFreeText(text) || text === '') throw unfit(field, text);
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** As `word`, where HAProxy would expand a log format. */
export function literalFormat(field: string, text: string): string {
  return word(field, text.replaceAll('%', '%%'));
}

/** A name in a place with a grammar of its own, such as between parentheses. */
export function isToken(text: unknown): text is string {
  return typeof text === 'string' && /^[\w.-]{1,128}$/.test(text);
}

export function token(field: string, text: string): string {
  if (!isToken(text)) throw unfit(field, text);
  return text;
}

/** For IPv4 a mask such as 255.255.255.0, for IPv6 the length of a prefix. */
export function isNetmask(text: string, vip: string): boolean {
  if (isIP(vip) === 6) return /^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= 128;
  if (isIP(text) !== 4) return false;
  const bits = text
    .split('.')
    .map((part) => Number(part).toString(2).padStart(8, '0'))
    .join('');
  return /^1+0*$/.test(bits);
}

/** For an address of the same kind as `vip`. */
export function netmask(text: string, vip: string): string {
  if (!isNetmask(text, vip)) throw unfit('netmask', text);
  return text;
}

export function isHostName(text: unknown): text is string {
  return typeof text === 'string' && /^[A-Za-z0-9._-]{1,253}$/.test(text);
}

export function isStatusCodes(text: unknown): text is string {
  return typeof text === 'string' && /^[1-5]\d\d(-[1-5]\d\d)?(,[1-5]\d\d(-[1-5]\d\d)?){0,19}$/.test(text);
}

export function isRequestPath(text: unknown): text is string {
  return isFreeText(text) && text.startsWith('/');
}

/** A request line holds no spaces and no letters beyond ASCII: they travel percent-encoded. */
export function requestPath(text: string): string {
  if (!isRequestPath(text)) throw unfit('url path', text);
  const encoded = text.replaceAll(/[^\u0021-\u007e]+/gu, (part) => encodeURIComponent(part));
  return word('url path', encoded);
}

/** A path of ours. HAProxy's and nginx's words could hold more, the runtime socket could not. */
export function path(text: string): string {
  if (!/^[\w./@+:,-]+$/.test(text)) throw unfit('data directory', text);
  return text;
}

/** One command for the runtime socket. Its words are separated by spaces, and `;` would begin another one. */
export function command(...words: (string | number)[]): string {
  for (const each of words) {
    if (!/^[\w./@+:,[\]-]+$/.test(String(each))) throw unfit('runtime command', each);
  }
  return words.join(' ');
}
