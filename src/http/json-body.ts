/**
 * Reads JSON bodies within the bounds that their schemas imply (body-bounds.ts).
 *
 * Invariant: what a body costs is bounded before it is parsed. The text is scanned for its depth and the number of its
 * fields and list items, and no body with too many reaches the parser. A large body is scanned, parsed, validated and
 * handled in separate turns of the event loop, and each client has one large body in memory at a time.
 */
import type { FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';
import { ClientError, invalidInput } from '../errors/catalogue.ts';
import { afterInput } from '../platform/event-loop.ts';
import type { App } from './app.ts';
import { bodyBounds, requireBounds } from './body-bounds.ts';
import type { BodyBounds } from './body-bounds.ts';
import { wholeText } from './request-body.ts';
import { createTurns } from './turns.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    bodyBounds?: BodyBounds;
  }
  interface FastifyRequest {
    hasLargeBody: boolean;
  }
}

/** For routes whose body has no schema, and for paths without a route. */
const smallest = bodyBounds(undefined, '');
export const smallestBodyLimit = smallest.bytes;

/** A body of more bytes is large. */
const largeBytes = 512 * 1024;

export function jsonBodies(app: App): void {
  app.decorateRequest('hasLargeBody', false);
  const turns = createTurns();
  app.addHook('onRoute', (route) => {
    const { body, params, querystring, operationId = route.url } = (route.schema ?? {}) as RequestSchemas;
    requireBounds(params, `${operationId}: path`);
    requireBounds(querystring, `${operationId}: query`);
    const bounds = bodyBounds(body, operationId, route.bodyLimit);
    // Of a body without a schema nothing is known but its route's limit.
    route.bodyLimit = body ? bounds.bytes : (route.bodyLimit ?? bounds.bytes);
    if (body) Object.assign(route.schema!, { 'x-body-limit-bytes': bounds.bytes });
    route.config = { ...route.config, bodyBounds: bounds };
    if (bounds.bytes > largeBytes) {
      // The body is not read before its turn; what has arrived of it waits in the socket.
      route.preParsing = (request, reply, payload, done) => {
        if (Number(request.headers['content-length']) <= largeBytes) return done(null, payload);
        const answered = new Promise<void>((resolve) => reply.raw.once('close', resolve));
        void turns.next(clientOf(request), answered).then(() => done(null, payload));
      };
    }
  });
  app.addHook('preHandler', (request, _reply, done) => {
    if (request.hasLargeBody) afterInput(done);
    else done();
  });
  parseJson(app);
}

interface RequestSchemas {
  body?: TSchema;
  params?: TSchema;
  querystring?: TSchema;
  operationId?: string;
}

const clientOf = (request: FastifyRequest) => String(request.by?.actor.clientId ?? request.ip);

/** JSON only; an empty body is no body (clients send the content type with a DELETE, too). */
function parseJson(app: App): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  const parser = wholeText((request, text, done) => {
    if (text === '') return done(null, undefined);
    const fault = faultOfStructure(text, request.routeOptions.config.bodyBounds ?? smallest);
    if (fault) return done(invalidInput([{ path: '', message: fault }]), undefined);
    request.hasLargeBody = text.length > largeBytes;
    if (!request.hasLargeBody) return parse(request, text, done);
    afterInput(() => parse(request, text, (error, value) => afterInput(() => done(error, value))));
  });
  app.addContentTypeParser('application/json', parser);
}

const maxDepth = 50;

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Which bound the text of a body passes, in words; undefined when it passes none. Text that is not JSON may get either
 * answer: the parser rejects it.
 */
export function faultOfStructure(json: string, bounds: Pick<BodyBounds, 'values' | 'fields'>): string | undefined {
  // Fields of the objects that the position is in, from the outermost; -1 in a list.
  const fields: number[] = [];
  let depth = 0;
  let values = 0;
  let inText = false;
  for (let i = 0; i < json.length; i++) {
    const char = json.charCodeAt(i);
    if (inText) {
      if (char === backslash) i += 1;
      else if (char === quote) inText = false;
    } else if (char === quote) inText = true;
    else if (char === comma) {
      if (++values > bounds.values) return tooManyValues(bounds.values);
      if (depth > 0 && fields[depth - 1]! > 0 && ++fields[depth - 1]! > bounds.fields)
        return tooManyFields(bounds.fields);
    } else if (char === openList || char === openObject) {
      // What walks through a body recurses: a deeper one than any schema has would end in a stack overflow.
      if (depth === maxDepth) return `the body must not nest objects and arrays more than ${maxDepth} deep`;
      if (++values > bounds.values) return tooManyValues(bounds.values);
      fields[depth++] = char === openObject ? 1 : 0;
    } else if ((char === closeList || char === closeObject) && depth > 0) depth -= 1;
  }
  return undefined;
}

const tooManyValues = (most: number) => `the body must not have more than ${most} fields and list items`;
const tooManyFields = (most: number) => `no object in the body may have more than ${most} fields`;

/** 413 with the limit of the operation. */
export function bodyTooLarge(request: FastifyRequest): ClientError {
  const { bodyLimit } = request.routeOptions;
  return new ClientError(
    'BodyTooLarge',
    `the body is larger than ${bodyLimit / 1024} KiB, the limit of this operation`,
  );
}
