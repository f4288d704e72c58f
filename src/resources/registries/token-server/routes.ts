/**
 * What distribution and its clients ask of us, in their protocols: tokens, and events. They check credentials of their
 * own, so the policy lets everybody in.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { ClientError } from '../../../errors/catalogue.ts';
import type { App, Routes } from '../../../http/app.ts';
import { ShortText } from '../../../http/shapes.ts';
import { wholeText } from '../../../http/request-body.ts';
import type { RegistryEvents } from '../contents/events.ts';
import { registryPaths } from './paths.ts';
import { TokenRefused } from './service.ts';
import type { TokenAnswer, TokenServer } from './service.ts';

const tags = ['Registries'];

const Scope = Type.Optional(Type.Array(Type.String({ maxLength: 4000 }), { maxItems: 100 }));
const TokenQuery = Type.Object({ service: Type.Optional(Type.String({ maxLength: 400 })), scope: Scope });
const TokenForm = Type.Object({
  grant_type: Type.Optional(ShortText),
  service: Type.Optional(Type.String({ maxLength: 400 })),
  scope: Type.Optional(Type.String({ maxLength: 4000 })),
  username: Type.Optional(ShortText),
  password: Type.Optional(Type.String({ maxLength: 1000 })),
});
/** Bytes. Anybody may send this much. */
const formLimit = 16 * 1024;
const Token = Type.Object({
  token: Type.String(),
  access_token: Type.String(),
  expires_in: Type.Integer(),
  issued_at: Type.String(),
});

export function registryHostRoutes(tokenServer: TokenServer, events: RegistryEvents): Routes {
  return (app) => {
    app.register(async (scoped) => {
      tokenRoutes(scoped as unknown as App, tokenServer);
      eventRoutes(scoped as unknown as App, events);
    });
  };
}

function tokenRoutes(app: App, tokenServer: TokenServer): void {
  const form = 'application/x-www-form-urlencoded';
  app.addContentTypeParser(
    form,
    wholeText((_request, body, done) => done(null, Object.fromEntries(new URLSearchParams(body)))),
  );
  app.get(
    registryPaths.token,
    {
      schema: {
        operationId: 'getRegistryToken',
        summary: "Log in to a region's registries: the token server of distribution's protocol",
        tags,
        security: [],
        querystring: TokenQuery,
        response: { 200: Token },
      },
    },
    (request, reply) => {
      const { service = '', scope = [] } = request.query;
      const scopes = scope.flatMap((each) => each.split(' '));
      return answer(request, reply, () =>
        tokenServer.issue({ ...basicOf(request), address: request.ip, service, scopes }),
      );
    },
  );
  app.post(
    registryPaths.token,
    {
      bodyLimit: formLimit,
      schema: {
        operationId: 'createRegistryToken',
        summary: "Log in to a region's registries, in the form of OAuth 2",
        tags,
        security: [],
        consumes: [form],
        body: TokenForm,
        response: { 200: Token },
      },
    },
    (request, reply) => {
      const { grant_type, service = '', scope = '', username, password } = request.body;
      return answer(request, reply, () => {
        if (grant_type !== 'password') throw new TokenRefused('DENIED', 'only the grant type password is supported');
        const shown = { name: username ?? '', secret: password ?? '', address: request.ip };
        return tokenServer.issue({ ...shown, service, scopes: scope.split(' ').filter(Boolean) });
      });
    },
  );
}

function eventRoutes(app: App, events: RegistryEvents): void {
  // Whatever cannot be read is no event: the host would send it again for ever.
  app.addContentTypeParser('application/vnd.docker.distribution.events.v1+json', wholeText(readEvents));
  app.post(
    registryPaths.events,
    {
      bodyLimit: 64 * 1024 * 1024,
      schema: {
        operationId: 'receiveRegistryEvents',
        summary: "What a region's registry host tells: pushes, pulls, deletions",
        tags,
        security: [],
        response: { 204: Type.Null() },
      },
      onRequest: async (request) => {
        if (await events.isHost(request.headers.authorization ?? '')) return;
        throw new ClientError('Unauthenticated', "this is for the region's registry hosts");
      },
    },
    async (request, reply) => {
      await events.take(request.body);
      return reply.code(204).send(null);
    },
  );
}

function readEvents(_request: unknown, body: string, done: (error: null, value: unknown) => void): void {
  try {
    done(null, JSON.parse(body));
  } catch {
    done(null, undefined);
  }
}

/** @throws TokenRefused */
function basicOf(request: FastifyRequest): { name: string; secret: string } {
  const encoded = /^basic +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
  const text = Buffer.from(encoded ?? '', 'base64').toString('utf8');
  const at = text.indexOf(':');
  return { name: text.slice(0, Math.max(at, 0)), secret: text.slice(at + 1) };
}

/** In distribution's words beside ours, and 401: of most other refusals its clients do not show the reason. */
async function answer(
  request: FastifyRequest,
  reply: FastifyReply,
  issue: () => Promise<TokenAnswer>,
): Promise<TokenAnswer> {
  reply.header('cache-control', 'no-store');
  try {
    return await issue();
  } catch (error) {
    if (!(error instanceof TokenRefused)) throw error;
    const { code, message, retryAfter } = error;
    reply.type('application/json');
    if (retryAfter === null) reply.code(401).header('www-authenticate', 'Basic realm="Cloudyard registries"');
    else reply.code(429).header('retry-after', String(retryAfter));
    const exception_class = retryAfter === null ? 'Unauthenticated' : 'TooManyRequests';
    const body = { exception_class, message, request_id: request.id };
    return reply.send(JSON.stringify({ ...body, errors: [{ code, message, path: '' }] })) as never;
  }
}
