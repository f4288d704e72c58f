/** Which variant of a file a client gets, and whether it has it already. */
import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';

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

/** A response that is kept in memory: all clients share it, also slow ones. */
export interface StoredContent {
  /** Hash of the content. */
  tag: string;
  variants: { identity: Buffer; gzip: Buffer };
}

export async function storeContent(identity: Buffer): Promise<StoredContent> {
  const tag = hash('sha256', identity, 'base64url').slice(0, 22);
  return { tag, variants: { identity, gzip: await promisify(gzip)(identity) } };
}

/** Sends the content, compressed if the client accepts it, or 304 if the client has it. */
export function sendContent(
  request: FastifyRequest,
  reply: FastifyReply,
  { tag, variants }: StoredContent,
): FastifyReply {
  const encoding = encodingFor(request.headers['accept-encoding'], variants);
  const etag = `"${tag}-${encoding}"`;
  reply.headers({ etag, vary: 'accept-encoding', 'cache-control': 'no-cache' });
  if (isKnown(request.headers['if-none-match'], etag)) return reply.code(304).send();
  if (encoding !== 'gzip') return reply.send(variants.identity);
  return reply.header('content-encoding', encoding).send(variants.gzip);
}
