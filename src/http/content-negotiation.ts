/** Pure: which variant of a file a client gets, and whether it has it already. */
import type { IncomingHttpHeaders } from 'node:http';

export type Encoding = 'br' | 'gzip' | 'identity';

/** The same content in several encodings. */
export interface Variants<Content> {
  /** Changes with the content. */
  tag: string;
  variants: Partial<Record<Encoding, Content>>;
}

/** The smallest variant that the client accepts, its headers for caches, and whether the client has it. */
export function negotiate(
  request: IncomingHttpHeaders,
  { tag, variants }: Variants<unknown>,
  cacheControl = 'no-cache',
) {
  const encoding = encodingFor(request['accept-encoding'], variants);
  const etag = `"${tag}-${encoding}"`;
  const caching = { etag, vary: 'accept-encoding', 'cache-control': cacheControl };
  return { encoding, caching, isKnown: isKnown(request['if-none-match'], etag) };
}

function encodingFor(header: string | string[] | undefined, variants: Variants<unknown>['variants']): Encoding {
  const accepted = String(header ?? '')
    .split(',')
    .map((each) =>
      each
        .toLowerCase()
        .split(';')
        .map((part) => part.trim()),
    )
    .filter(([, weight]) => !/^q=0(\.0*)?$/.test(weight ?? ''))
    .map(([name]) => name);
  return (['br', 'gzip'] as const).find((name) => variants[name] && accepted.includes(name)) ?? 'identity';
}

function isKnown(header: string | undefined, tag: string): boolean {
  const known = header?.split(',').map((each) => each.trim().replace(/^W\//, '')) ?? [];
  return known.includes(tag) || known.includes('*');
}
