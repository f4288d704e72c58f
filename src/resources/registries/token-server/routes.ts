/**
 * What distribution and its clients ask of us, in their protocols: tokens, and events. They check credentials of their
 * own, so the policy lets everybody in.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { ClientError } from '../../../errors/catalogue.ts';
import type { App, Routes } from '../../../http/app.ts';
import type { RegistryEvents } from '../contents/events.ts';
import { registryPaths } from './paths.ts';
import { TokenRefused } from './service.ts';
import type { TokenAnswer, TokenServer } from './service.ts';

const tags = ['Registries'];

const Scope = Type.Optional(Type.Array(Type.String({ maxLength: 4000 })));
const TokenQuery = Type.Object({ service: Type.Optional(Type.String({ maxLength: 400 })), scope: Scope });
const TokenForm = Type.Object({
  grant_type: Type.Optional(Type.String()),
  service: Type.Optional(Type.String({ maxLength: 400 })),
  scope: Type.Optional(Type.String({ maxLength: 4000 })),
  username: Type.Optional(Type.String()),
  password: Type.Optional(Type.String()),
});
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
  app.addContentTypeParser(form, { parseAs: 'string' }, (_request, body, done) => {
    done(null, Object.fromEntries(new URLSearchParams(body as string)));
  });
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
      return answer(request, reply, () => tokenServer.issue({ ...basicOf(request), service, scopes }));
    },
  );
  app.post(
    registryPaths.token,
    {
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
        const shown = { name: username ?? '', secret: password ?? '' };
        return tokenServer.issue({ ...shown, service, scopes: scope.split(' ').filter(Boolean) });
      });
    },
  );
}

function eventRoutes(app: App, events: RegistryEvents): void {
  // Whatever cannot be read is no event: the host would send it again for ever.
  app.addContentTypeParser('application/vnd.docker.distribution.events.v1+json', { parseAs: 'string' }, readEvents);
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

function readEvents(_request: unknown, body: string | Buffer, done: (error: null, value: unknown) => void): void {
  try {
    done(null, JSON.parse(body as string));
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

/** In distribution's words beside ours, and always 401: of no other refusal do its clients show the reason. */
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
    const { code, message } = error;
    reply.code(401).header('www-authenticate', 'Basic realm="Cloudyard registries"').type('application/json');
    const body = { exception_class: 'Unauthenticated', message, request_id: request.id };
    return reply.send(JSON.stringify({ ...body, errors: [{ code, message, path: '' }] })) as never;
  }
}
