/**
 * Reads BER, the encoding of PKCS#12 bundles and revocation lists. It reads lengths of both forms (Java and old
 * Windows write the indefinite form) and validates nothing else, because OpenSSL parses the result.
 */
export interface Element {
  /** The identifier byte: class, constructed bit, number. */
  tag: number;
  /** Of a primitive element. */
  content: Buffer;
  /** Of a constructed element; read on first access. @throws BerError */
  readonly children: Element[];
  /** The complete element, with tag and length. */
  whole: Buffer;
}

export class BerError extends Error {}

export const tags = {
  integer: 0x02,
  octets: 0x04,
  oid: 0x06,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  /** [0], constructed. */
  zero: 0xa0,
} as const;

const constructed = 0x20;
const endOfContents = 0x00;
const maxDepth = 50;
/** Limit of elements that are read. The children of an element of definite length are read on first access only. */
const maxElements = 10_000;
const noBytes = Buffer.alloc(0);

/** Reads bytes that are exactly one element. @throws BerError */
export function readBer(bytes: Buffer): Element {
  const { element, end } = readAt(bytes, 0, { depth: 0, count: { left: maxElements } });
  if (end !== bytes.length) throw new BerError('it has data after the end');
  return element;
}

/** The nth child, which must have the tag. @throws BerError */
export function child(parent: Element, nth: number, tag: number): Element {
  const found = parent.children[nth];
  if (found?.tag !== tag) throw new BerError('an element is missing or of another type');
  return found;
}

/** An octet string, also one in segments. @throws BerError */
export function octetsOf(element: Element): Buffer {
  if ((element.tag & constructed) === 0) return element.content;
  return Buffer.concat(element.children.map(octetsOf));
}

/** An object identifier as hex, for comparing. */
export function oidOf(element: Element): string {
  return element.content.toString('hex');
}

/** A whole number of up to 48 bits; infinity for a larger one. */
export function integerOf(element: Element): number {
  const { content } = element;
  if (content.length === 0 || content[0]! >= 0x80) throw new BerError('a number is not positive');
  return content.length > 6 ? Infinity : content.readUIntBE(0, content.length);
}

/** How deep an element is, and how many more may be read. */
interface Limits {
  depth: number;
  count: { left: number };
}

function readAt(bytes: Buffer, start: number, limits: Limits): { element: Element; end: number } {
  if (limits.depth > maxDepth) throw new BerError('it is nested too deeply');
  if (--limits.count.left < 0) throw new BerError('it has too many elements');
  const tag = byteAt(bytes, start);
  if ((tag & 0x1f) === 0x1f) throw new BerError('a tag is too large');
  const { length, from } = lengthAt(bytes, start + 1);
  const isConstructed = (tag & constructed) !== 0;
  if (length === null && !isConstructed) throw new BerError('a length is missing');
  const end = length === null ? bytes.length : from + length;
  if (end > bytes.length) throw new BerError('it ends too early');
  if (!isConstructed) {
    const content = bytes.subarray(from, end);
    return { element: { tag, content, children: [], whole: bytes.subarray(start, end) }, end };
  }
  const inside = bytes.subarray(0, end);
  const deeper = { ...limits, depth: limits.depth + 1 };
  if (length !== null) return { element: lazyElement(tag, inside, start, from, deeper), end };
  const { children, at } = childrenAt(inside, from, true, deeper);
  return { element: { tag, content: noBytes, children, whole: bytes.subarray(start, at) }, end: at };
}

function lazyElement(tag: number, inside: Buffer, start: number, from: number, limits: Limits): Element {
  let children: Element[] | undefined;
  return {
    tag,
    content: noBytes,
    get children() {
      return (children ??= childrenAt(inside, from, false, limits).children);
    },
    whole: inside.subarray(start),
  };
}

/** Reads to the end of the bytes, or to the end-of-contents mark of an indefinite length. */
function childrenAt(bytes: Buffer, from: number, toMark: boolean, limits: Limits): { children: Element[]; at: number } {
  const children: Element[] = [];
  let at = from;
  while (toMark || at < bytes.length) {
    if (toMark && byteAt(bytes, at) === endOfContents) {
      if (byteAt(bytes, at + 1) !== 0) throw new BerError('an end-of-contents mark is invalid');
      return { children, at: at + 2 };
    }
    const { element, end } = readAt(bytes, at, limits);
    children.push(element);
    at = end;
  }
  return { children, at };
}

/** `length` is null for the indefinite form. */
function lengthAt(bytes: Buffer, at: number): { length: number | null; from: number } {
  const first = byteAt(bytes, at);
  if (first < 0x80) return { length: first, from: at + 1 };
  if (first === 0x80) return { length: null, from: at + 1 };
  const size = first & 0x7f;
  if (size > 4 || at + 1 + size > bytes.length) throw new BerError('a length is too large');
  return { length: bytes.readUIntBE(at + 1, size), from: at + 1 + size };
}

function byteAt(bytes: Buffer, at: number): number {
  const byte = bytes[at];
  if (byte === undefined) throw new BerError('it ends too early');
  return byte;
}
