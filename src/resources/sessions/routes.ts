/** The operations of sessions. */
import type { FastifyRequest } from 'fastify';
import { everyone, tokenReader } from '../../authz/access.ts';
import type { Actor, RequestContext } from '../../authz/actor.ts';
import { factsOf, unauthenticated } from '../../http/authorization.ts';
import { operationsOf } from '../../http/operations.ts';
import { csrfTokenOf, removedCookie, requireSameOrigin, sessionCookie, sessionOf } from '../../http/session-cookie.ts';
import { CreateSession, Session } from './schema.ts';
import type { Sessions } from './service.ts';

interface Services {
  sessions: Sessions;
  tokens: { authenticate(token: string): Actor | null | Promise<Actor | null>; recognizes(token: string): boolean };
}

const operation = operationsOf({
  name: 'Sessions',
  description:
    'Browsers sign in with a token once and then send a cookie, which every operation accepts instead of the header ' +
    '`Authorization`. Requests by cookie other than GET and HEAD need the header `X-CSRF-Token`.',
});
const path = '/cloudyard/v1/session';
const noSession = 'the request has no session cookie; sign in with POST /cloudyard/v1/session';

export const sessionOperations = ({ sessions, tokens }: Services) => [
  operation('POST', path, {
    id: 'createSession',
    summary: 'Sign in',
    description: 'The response sets the cookie `cloudyard_session`, which scripts cannot read.',
    access: everyone,
    body: CreateSession,
    response: Session,
    status: 201,
    handle: async ({ body }, reply) => {
      const { request } = reply;
      requireSameOrigin(request);
      const cookie = await sessions.create(await signIn(tokens, request, body.token));
      reply.header('set-cookie', sessionCookie(request, cookie)).header('cache-control', 'no-store');
      return describe(sessions, cookie);
    },
  }),
  operation('GET', path, {
    id: 'getSession',
    summary: 'Get the session',
    access: tokenReader,
    response: Session,
    handle: ({ by }, reply) => {
      reply.header('cache-control', 'no-store');
      return describe(sessions, by.actor.sessionId === undefined ? null : sessionOf(reply.request));
    },
  }),
  operation('DELETE', path, {
    id: 'deleteSession',
    summary: 'Sign out',
    access: tokenReader,
    handle: async ({ by }, reply) => {
      const { sessionId } = by.actor;
      if (sessionId === undefined) throw unauthenticated(noSession);
      await sessions.delete(by, sessionId);
      reply.header('set-cookie', removedCookie(reply.request));
    },
  }),
];

/** @throws ClientError 401 */
async function describe(sessions: Sessions, cookie: string | null): Promise<Session> {
  const session = cookie && (await sessions.get(cookie));
  if (!session) throw unauthenticated(noSession);
  return { ...session, csrf_token: csrfTokenOf(cookie) };
}

/** Fails like the authentication of a request, and counts like one. @throws ClientError 401, 429 */
async function signIn(tokens: Services['tokens'], request: FastifyRequest, text: string): Promise<RequestContext> {
  const limit = request.server.anonymousLimit;
  const token = text.trim().replace(/^apikey +/i, '');
  if (limit.isReached('signIn', request.ip)) throw limit.refusal();
  if (limit.isReached('failed', request.ip) && !tokens.recognizes(token)) throw limit.refusal();
  const actor = await tokens.authenticate(token);
  if (!actor) {
    limit.add('failed', request.ip);
    throw unauthenticated('the token is unknown, expired or revoked');
  }
  limit.add('signIn', request.ip);
  return { actor, requestId: request.id, request: factsOf(request) };
}
