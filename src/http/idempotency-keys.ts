/** `Idempotency-Key` on every POST: a repeated request gets the stored response. See idempotency/idempotency.ts. */
import type { FastifyReply, FastifyRequest, preHandlerHookHandler, preSerializationHookHandler } from 'fastify';
import { invalidInput } from '../errors/catalogue.ts';
import type { App } from './app.ts';
import type { Repeat } from './error-handling.ts';
import type { RequestContext } from '../authz/actor.ts';
import { errorsOf, errorsOfIdempotencyKey } from './request-errors.ts';

export interface IdempotencyDeps {
  fingerprintOf(method: string, path: string, body: unknown): string;
  findResponse(context: RequestContext): Promise<{ body: unknown } | undefined>;
  storeResponse(context: RequestContext, body: unknown): Promise<void>;
  /** Whether the error means that another request claimed the key. */
  isKeyClaimed(error: unknown): boolean;
}

/** Adds the hooks to each POST that is registered afterwards. They run after authorization and validation. */
export function idempotencyKeys(app: App, deps: IdempotencyDeps): void {
  const repeat: preHandlerHookHandler = (request, reply, done) => {
    const key = request.headers['idempotency-key'];
    if (key === undefined || !request.by) return done();
    const { timeLimit } = request.server;
    timeLimit.limit(repeatIfKnown(deps, request, reply, String(key))).then((repeated) => {
      if (!repeated) done();
    }, done);
  };
  const store: preSerializationHookHandler<unknown> = (request, reply, payload, done) => {
    const claim = request.by?.idempotency;
    if (!claim || claim.claimed || reply.statusCode >= 300) return done(null, payload);
    const { timeLimit } = request.server;
    timeLimit.limit(deps.storeResponse(request.by, payload)).then(() => done(null, payload), done);
  };
  app.addHook('onRoute', (route) => {
    if (route.method !== 'POST') return;
    route.preHandler = [repeat, ...[route.preHandler ?? []].flat()];
    route.preSerialization = [store, ...[route.preSerialization ?? []].flat()];
  });
}

/** Sends the stored response of the key and returns true, or sets the key for the transaction to claim. */
async function repeatIfKnown(
  deps: IdempotencyDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  key: string,
): Promise<boolean> {
  if (errorsOfIdempotencyKey(request).length > 0) throw invalidInput(await errorsOf(request));
  // With the query, which is part of the request that the key identifies.
  const fingerprint = deps.fingerprintOf('POST', request.url, request.body);
  request.by.idempotency = { key, fingerprint, claimed: false };
  const stored = await deps.findResponse(request.by);
  if (stored) sendStored(request, reply, stored.body);
  return stored !== undefined;
}

/** For the error handler: the request lost the race for its key, so the response of the winner is stored by now. */
export function repeatResponse(deps: IdempotencyDeps): Repeat {
  return async (error, request, reply) => {
    if (!deps.isKeyClaimed(error)) return false;
    const stored = await request.server.timeLimit.limit(deps.findResponse(request.by));
    if (!stored) return false;
    sendStored(request, reply, stored.body);
    return true;
  };
}

function sendStored(request: FastifyRequest, reply: FastifyReply, body: unknown): FastifyReply {
  request.by.idempotency!.claimed = true;
  const success = Object.keys((request.routeOptions.schema?.response as object) ?? {}).find((code) => code < '300');
  return reply.code(Number(success ?? 200)).send(body === null ? undefined : body);
}
