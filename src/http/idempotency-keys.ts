/** `Idempotency-Key` on every POST: a repeated request gets the stored response. See idempotency/idempotency.ts. */
import type { FastifyReply, FastifyRequest, preHandlerHookHandler, preSerializationHookHandler } from 'fastify';
import { invalidInput } from '../errors/catalogue.ts';
import { fingerprintOf, type Idempotency, KeyClaimed } from '../idempotency/idempotency.ts';
import type { Db } from '../platform/db.ts';
import type { App } from './app.ts';
import { errorsOf, errorsOfIdempotencyKey } from './request-errors.ts';

export interface IdempotencyDeps {
  db: Db;
  idempotency: Idempotency;
}

/** Adds the hooks to each POST that is registered afterwards. They run after authorization and validation. */
export function idempotencyKeys(app: App, deps: IdempotencyDeps): void {
  const { db, idempotency } = deps;
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
    timeLimit.limit(idempotency.storeResponse(db, request.by, payload)).then(() => done(null, payload), done);
  };
  app.addHook('onRoute', (route) => {
    if (route.method !== 'POST') return;
    route.preHandler = [repeat, ...[route.preHandler ?? []].flat()];
    route.preSerialization = [store, ...[route.preSerialization ?? []].flat()];
  });
}

/** Sends the stored response of the key and returns true, or sets the key for the transaction to claim. */
async function repeatIfKnown(
  { db, idempotency }: IdempotencyDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  key: string,
): Promise<boolean> {
  if (errorsOfIdempotencyKey(request).length > 0) throw invalidInput(await errorsOf(request));
  // With the query, which is part of the request that the key identifies.
  const fingerprint = fingerprintOf('POST', request.url, request.body);
  request.by.idempotency = { key, fingerprint, claimed: false };
  const stored = await idempotency.findResponse(db, request.by);
  if (stored) sendStored(request, reply, stored.body);
  return stored !== undefined;
}

/**
 * For the error handler: if the request lost the race for its key, sends the response of the winner, which is stored by now. False
 * for every other error.
 * @throws ClientError 409 if the other request was different
 */
export async function repeatResponse(
  { db, idempotency }: IdempotencyDeps,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<boolean> {
  if (!(error instanceof KeyClaimed)) return false;
  const stored = await request.server.timeLimit.limit(idempotency.findResponse(db, request.by));
  if (stored) sendStored(request, reply, stored.body);
  return stored !== undefined;
}

function sendStored(request: FastifyRequest, reply: FastifyReply, body: unknown): FastifyReply {
  request.by.idempotency!.claimed = true;
  const success = Object.keys((request.routeOptions.schema?.response as object) ?? {}).find((code) => code < '300');
  return reply.code(Number(success ?? 200)).send(body === null ? undefined : body);
}
