/** Which variant of a file a client gets, and whether it has it already. */

export type Encoding = 'br' | 'gzip' | 'identity';

/** The smallest of the variants that the client accepts. `header`: `Accept-Encoding`. */
export function encodingFor(
  header: string | string[] | undefined,
  variants: Partial<Record<Encoding, unknown>>,
): Encoding {
  const accepted = String(header ?? '')
    .split(',')
    .map((each) => each.trim().toLowerCase().split(/ *; */))
    .filter(([, weight]) => !/^q=0(\.0*)?$/.test(weight ?? ''))
    .map(([name]) => name);
  return (['br', 'gzip'] as const).find((name) => variants[name] && accepted.includes(name)) ?? 'identity';
}

/** Whether the client has the content with this tag. `header`: `If-None-Match`. */
export function isKnown(header: string | undefined, tag: string): boolean {
  const known = header?.split(',').map((each) => each.trim().replace(/^W\//, '')) ?? [];
  return known.includes(tag) || known.includes('*');
}
