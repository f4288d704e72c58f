/** Responses that are kept in memory, also compressed: all clients share them, also slow ones. */
import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { negotiate, type Variants } from './content-negotiation.ts';

export interface StoredContent extends Variants<Buffer> {
  variants: { identity: Buffer; gzip: Buffer };
}

export async function storeContent(identity: Buffer): Promise<StoredContent> {
  const tag = hash('sha256', identity, 'base64url').slice(0, 22);
  return { tag, variants: { identity, gzip: await promisify(gzip)(identity) } };
}

/** Sends the content, compressed if the client accepts it, or 304 if the client has it. */
export function sendContent(request: FastifyRequest, reply: FastifyReply, content: StoredContent): FastifyReply {
  const { encoding, caching, isKnown } = negotiate(request.headers, content);
  reply.headers(caching);
  if (isKnown) return reply.code(304).send();
  if (encoding !== 'gzip') return reply.send(content.variants.identity);
  return reply.header('content-encoding', encoding).send(content.variants.gzip);
}
