/**
 * Reads JSON bodies within the bounds that their schemas imply (body-bounds.ts).
 *
 * Invariant: the cost of a body is bounded before it is parsed. A scan of the text checks its depth and the number of its
 * fields and list items, and the parser receives no body that exceeds a bound. A large body is scanned, parsed, validated
 * and handled in separate turns of the event loop, and each client has one large body in memory at a time.
 */
import type { FastifyRequest, preValidationHookHandler } from 'fastify';
import type { TSchema } from 'typebox';
import { ClientError, invalidInput, maxErrors } from '../errors/catalogue.ts';
import { afterInput } from '../platform/event-loop.ts';
import { oneAtATime } from '../platform/turns.ts';
import type { App } from './app.ts';
import { bodyBounds, type BodyBounds, requireBounds } from './body-bounds.ts';
import { wholeText } from './request-body.ts';
import { ValidationError } from './validation.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    bodyBounds?: BodyBounds;
  }
  interface FastifyRequest {
    hasLargeBody: boolean;
  }
}

/** The bounds of routes whose body has no schema, and of paths without a route. */
const smallest = bodyBounds(undefined, '');
/** Bytes. */
export const smallestBodyLimit = smallest.bytes;

/** A large body is longer than this. */
const largeBytes = 512 * 1024;

/**
 * Replaces the body parsers of the app, and sets the bounds of the routes that are registered afterwards. @throws
 * Error, when a route is registered, for an unbounded schema
 */
export function jsonBodies(app: App): void {
  app.decorateRequest('hasLargeBody', false);
  const inTurn = oneAtATime();
  app.addHook('onRoute', (route) => {
    const { body, params, querystring, operationId = route.url } = (route.schema ?? {}) as RequestSchemas;
    requireBounds(params, `${operationId}: path`);
    requireBounds(querystring, `${operationId}: query`);
    const bounds = bodyBounds(body, operationId, route.bodyLimit);
    // Without a schema of the body, only the limit of the route applies.
    route.bodyLimit = body ? bounds.bytes : (route.bodyLimit ?? bounds.bytes);
    if (body) Object.assign(route.schema!, { 'x-body-limit-bytes': bounds.bytes });
    if (body) route.preValidation = isOptionalBody(body) ? addBody : requireBody;
    route.config = { ...route.config, bodyBounds: bounds };
    if (bounds.bytes > largeBytes) {
      // The body is not read before its turn; bytes that have arrived stay in the buffer of the socket.
      route.preParsing = (request, reply, payload, done) => {
        if (Number(request.headers['content-length']) <= largeBytes) return done(null, payload);
        const answered = new Promise<void>((resolve) => reply.raw.once('close', resolve));
        void inTurn(clientOf(request), () => {
          done(null, payload);
          return answered;
        });
      };
    }
  });
  app.addHook('preHandler', (request, _reply, done) => {
    if (request.hasLargeBody) afterInput(done);
    else done();
  });
  parseJson(app);
}

const addBody: preValidationHookHandler = (request, _reply, done) => {
  if (request.body === undefined) request.body = {};
  done();
};

/** Before validation, which would take an absent body for `null`. */
const requireBody: preValidationHookHandler = (request, _reply, done) => {
  const missing = [{ path: '', message: 'the body is required' }];
  done(request.body === undefined ? new ValidationError(missing, 'body') : undefined);
};

/**
 * Whether a request may omit its body, which then counts as `{}`: every field is optional. A map has no fields, so its
 * body is required; otherwise a lost body could clear all tags.
 */
export function isOptionalBody(body: TSchema | undefined): boolean {
  const { properties, required = [] } = (body ?? {}) as { properties?: object; required?: string[] };
  return properties !== undefined && required.length === 0;
}

interface RequestSchemas {
  body?: TSchema;
  params?: TSchema;
  querystring?: TSchema;
  operationId?: string;
}

const clientOf = (request: FastifyRequest) => String(request.by?.actor.clientId ?? request.ip);

/** Accepts JSON only. An empty body counts as absent: some clients send the content type with a DELETE. */
function parseJson(app: App): void {
  // Schemas refuse `__proto__` as an unknown field, and tags may have that key: JSON.parse makes it an ordinary property.
  const parse = app.getDefaultJsonParser('ignore', 'ignore');
  app.removeAllContentTypeParsers();
  const parser = wholeText((request, text, done) => {
    if (text === '') return done(null, undefined);
    const error = errorOfStructure(text, request.routeOptions.config.bodyBounds ?? smallest);
    if (error) return done(invalidInput([{ path: '', message: error }]), undefined);
    request.hasLargeBody = text.length > largeBytes;
    if (!request.routeOptions.schema?.body) {
      return parse(request, text, (error, value) => done(error ?? unexpectedBody(value), undefined));
    }
    if (!request.hasLargeBody) return parse(request, text, done);
    afterInput(() => parse(request, text, (error, value) => afterInput(() => done(error, value))));
  });
  app.addContentTypeParser('application/json', parser);
}

/** For operations without a body: an ignored field could be a misspelt filter. `{}` and `null` count as no body. */
function unexpectedBody(body: unknown): ClientError | null {
  if (body === null) return null;
  if (typeof body !== 'object' || Array.isArray(body)) {
    return invalidInput([{ path: '', message: 'this operation takes no body' }]);
  }
  const fields = Object.keys(body).slice(0, maxErrors);
  if (fields.length === 0) return null;
  return invalidInput(fields.map((path) => ({ path, message: 'is not a known field; this operation takes no body' })));
}

const maxDepth = 50;

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * The message for the bound that the text of a body exceeds; undefined if it exceeds none. For invalid JSON
 * the result is arbitrary, because the parser rejects it.
 */
function errorOfStructure(json: string, bounds: Pick<BodyBounds, 'values' | 'fields'>): string | undefined {
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
      // Code that walks a body recurses, so the depth is limited to avoid a stack overflow. No schema is this deep.
      if (depth === maxDepth) return `the body must not nest objects and arrays more than ${maxDepth} deep`;
      if (++values > bounds.values) return tooManyValues(bounds.values);
      fields[depth++] = char === openObject ? 1 : 0;
    } else if ((char === closeList || char === closeObject) && depth > 0) depth -= 1;
  }
  return undefined;
}

const tooManyValues = (limit: number) => `the body must not have more than ${limit} fields and list items`;
const tooManyFields = (limit: number) => `no object in the body may have more than ${limit} fields`;

/** 413 with the limit of the operation. */
export function bodyTooLarge(request: FastifyRequest): ClientError {
  const { bodyLimit } = request.routeOptions;
  return new ClientError(
    'BodyTooLarge',
    `the body is larger than ${bodyLimit / 1024} KiB, the limit of this operation`,
  );
}
