/** The operations of sign-in with OpenID Connect. They are public, so the requests of each address are limited. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { pattern } from '../../http/patterns.ts';
import { everyone } from '../../authz/access.ts';
import { ClientError } from '../../errors/catalogue.ts';
import { factsOf } from '../../http/authorization.ts';
import { indexHeaders, plainPage } from '../../http/index-page.ts';
import { operationsOf } from '../../http/operations.ts';
import { removedSignInCookie, sessionCookie, signInCookie, signInOf } from '../../http/session-cookie.ts';
import { withZone } from '../../platform/clock.ts';
import { escapeHtml } from '../../platform/html.ts';
import type { Sessions } from '../sessions/service.ts';
import { Callback, DeviceSignIn, DeviceToken, FinishDeviceSignIn, SignInMethods } from './schema.ts';
import { callbackPath, pendingSeconds, type SignIn, type SignInRequest } from './service.ts';

interface Services {
  /** Null: not configured. */
  signIn: SignIn | null;
  sessions: Sessions;
}

const operation = operationsOf({
  name: 'Sign-in',
  description: 'Sign-in of people with an OpenID Connect provider, if the operator has configured one.',
});
const counted = { config: { isCounted: true } };
const consolePath = '/console/';

export const signInOperations = ({ signIn, sessions }: Services) => [
  operation('GET', '/cloudyard/v1/sign_in', {
    id: 'getSignInMethods',
    summary: 'Get the ways to sign in',
    access: everyone,
    response: SignInMethods,
    handle: () => ({ oidc: signIn !== null, issuer: signIn?.issuer ?? null }),
  }),
  operation('GET', '/cloudyard/v1/sign_in/oidc', {
    id: 'startSignIn',
    summary: 'Send the browser to the OpenID Connect provider',
    access: everyone,
    status: 302,
    route: counted,
    query: Type.Object({
      return_to: Type.Optional(
        Type.String({
          pattern: pattern(
            String.raw`^/console(/[\w~-][\w.~-]*)*/?(\?[\w.~%=&+-]*)?$`,
            'a path of the console such as /console/tasks',
          ),
          maxLength: 1000,
          description: 'Page of the console to show afterwards',
        }),
      ),
    }),
    handle: (request, reply) =>
      page(reply, async () => {
        const { url, pending } = await required(signIn).begin(request.query.return_to ?? consolePath);
        reply.header('set-cookie', signInCookie(reply.request, pending, pendingSeconds));
        return reply.redirect(url, 302);
      }),
  }),
  operation('GET', callbackPath, {
    id: 'finishSignIn',
    summary: 'Finish the sign-in of a browser',
    description: 'The provider redirects the browser to this operation. The response sets the cookie of a session.',
    access: everyone,
    route: counted,
    status: 302,
    query: Callback,
    handle: (_request, reply) =>
      page(reply, async () => {
        const { request } = reply;
        const query = request.url.split('?').slice(1).join('?');
        const finished = await counting(request, () =>
          required(signIn).finish(query, signInOf(request) ?? '', requestOf(request)),
        );
        const cookie = await sessions.create(finished.context);
        reply.header('set-cookie', [sessionCookie(request, cookie), removedSignInCookie(request)]);
        return reply.redirect(finished.returnTo, 302);
      }),
  }),
  operation('POST', '/cloudyard/v1/sign_in/device', {
    id: 'startDeviceSignIn',
    summary: 'Start the sign-in of a program',
    description: 'The person confirms the code at the provider, in any browser.',
    access: everyone,
    route: counted,
    response: DeviceSignIn,
    status: 201,
    handle: () => required(signIn).beginDevice(),
  }),
  operation('POST', '/cloudyard/v1/sign_in/device/token', {
    id: 'finishDeviceSignIn',
    summary: 'Get the token of a confirmed sign-in',
    access: everyone,
    route: counted,
    body: FinishDeviceSignIn,
    response: DeviceToken,
    handle: async ({ body }, reply) => {
      const { request } = reply;
      const token = await counting(request, () => required(signIn).finishDevice(body.device, requestOf(request)));
      reply.header('cache-control', 'no-store');
      const [status, expires] = token
        ? (['complete', withZone(token.expiresAt)] as const)
        : (['pending', null] as const);
      return { status, token: token?.text ?? null, expires_at: expires };
    },
  }),
];

/** @throws ClientError 404 */
function required(signIn: SignIn | null): SignIn {
  if (signIn) return signIn;
  throw new ClientError('NotFound', 'sign-in with OpenID Connect is not configured (CLOUDYARD_OIDC_ISSUER)');
}

/** A refused sign-in counts like a failed authentication. @throws ClientError 429 */
async function counting<T>(request: FastifyRequest, work: () => Promise<T>): Promise<T> {
  const limit = request.server.anonymousLimit;
  if (limit.isReached('failed', request.ip)) throw limit.refusal();
  try {
    return await work();
  } catch (error) {
    if (error instanceof ClientError && error.status < 500) limit.add('failed', request.ip);
    throw error;
  }
}

function requestOf(request: FastifyRequest): SignInRequest {
  return { requestId: request.id, facts: factsOf(request) };
}

/** Shows errors on a page if a browser asks, because a person reads them. */
async function page(reply: FastifyReply, work: () => Promise<FastifyReply>): Promise<FastifyReply> {
  reply.header('cache-control', 'no-store');
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    const { status, message, headers, cause } = error;
    if (cause) reply.request.log.warn({ reqId: reply.request.id, err: cause }, 'a sign-in failed');
    if (!reply.request.headers.accept?.includes('text/html')) throw error;
    reply
      .code(status)
      .headers({ ...headers, ...indexHeaders })
      .type('text/html; charset=utf-8');
    const lines = [`<p>${escapeHtml(message)}</p>`, `<p><a href="${consolePath}">Back to the sign-in</a></p>`];
    return reply.send(plainPage('The sign-in failed', lines));
  }
}
