/**
 * Operations that registry hosts and container clients call, in the protocols of distribution: tokens and events. They
 * are public, because they check credentials of their own.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { everyone } from '../../../authz/access.ts';
import { ClientError } from '../../../errors/catalogue.ts';
import type { App, Routes } from '../../../http/app.ts';
import { operationsOf } from '../../../http/operations.ts';
import { Component, DateTime, Described, ShortText } from '../../../http/shapes.ts';
import { wholeText } from '../../../http/request-body.ts';
import type { RegistryEvents } from '../contents/events.ts';
import { registryPaths } from './paths.ts';
import { TokenRefused, type TokenServer } from './service.ts';

const tag = {
  name: 'Registry protocol',
  description:
    'Called by container clients and registry hosts, in the protocols of CNCF distribution; users of the API do not need ' +
    'these operations. They check credentials of their own instead of a token.',
};
const operation = operationsOf(tag);

const service = Type.Optional(Type.String({ maxLength: 400, description: 'Name of the registry host' }));
const scopeDescription = 'Requested access, `repository:<name>:<actions>`; several are separated by spaces';
/** OAuth 2 servers ignore unknown parameters (RFC 6749, 3.2), and container clients send some. */
const TokenQuery = Type.Object(
  {
    service,
    scope: Type.Optional(
      Type.Array(Type.String({ maxLength: 4000 }), {
        maxItems: 100,
        description: `${scopeDescription}, or the parameter is repeated`,
      }),
    ),
  },
  { additionalProperties: true },
);
const TokenForm = Component('RegistryTokenForm', {
  grant_type: Type.Optional({ ...ShortText, description: 'Always `password`' }),
  service,
  scope: Type.Optional(Type.String({ maxLength: 4000, description: scopeDescription })),
  username: Type.Optional({ ...ShortText, description: 'Name of the user, or `apikey`' }),
  password: Type.Optional(
    Type.String({
      maxLength: 1000,
      description: 'Secret of the user, or a token of this API under the name `apikey`',
    }),
  ),
});
/** Bytes. The operation is public, so anyone can send this much. */
const formLimit = 16 * 1024;
const Token = Component('RegistryToken', {
  token: Type.String({ description: 'The token, a JWT' }),
  access_token: Type.String({ description: 'The same token, as OAuth 2 names it' }),
  expires_in: Type.Integer({ description: 'Seconds until the token expires' }),
  issued_at: Described(DateTime, 'When the token was issued'),
});
type Token = Static<typeof Token>;

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
  const getToken = operation('GET', registryPaths.token, {
    id: 'getRegistryToken',
    summary: 'Get a registry token',
    description: 'The header `Authorization: Basic` contains the name and the secret of the user.',
    access: everyone,
    query: TokenQuery,
    response: Token,
    handle: ({ query }, reply) => {
      const { request } = reply;
      const { service = '', scope = [] } = query;
      const scopes = scope.flatMap((each) => each.split(' '));
      return answer(request, reply, (client) => tokenServer.issue({ ...basicOf(request), ...client, service, scopes }));
    },
  });
  getToken(app);
  app.post(
    registryPaths.token,
    {
      bodyLimit: formLimit,
      config: { access: everyone },
      schema: {
        operationId: 'createRegistryToken',
        summary: 'Create a registry token',
        description: 'The same as `getRegistryToken`, in the form of OAuth 2.',
        tags: [tag.name],
        security: [],
        consumes: [form],
        body: TokenForm,
        response: { 200: Token },
      },
    },
    (request, reply) => {
      const { grant_type, service = '', scope = '', username, password } = request.body;
      return answer(request, reply, (client) => {
        if (grant_type !== 'password') throw new TokenRefused('DENIED', 'grant_type must be password');
        const shown = { name: username ?? '', secret: password ?? '' };
        return tokenServer.issue({ ...shown, ...client, service, scopes: scope.split(' ').filter(Boolean) });
      });
    },
  );
}

function eventRoutes(app: App, events: RegistryEvents): void {
  // The host retries a rejected body forever, so one that cannot be parsed is accepted and ignored.
  app.addContentTypeParser('application/vnd.docker.distribution.events.v1+json', wholeText(readEvents));
  app.post(
    registryPaths.events,
    {
      bodyLimit: 64 * 1024 * 1024,
      config: { access: everyone },
      schema: {
        operationId: 'receiveRegistryEvents',
        summary: 'Receive the events of a registry host',
        description: 'Registry hosts report pushes, pulls and deletions here.',
        tags: [tag.name],
        security: [],
        response: { 204: Type.Null({ description: 'No content' }) },
      },
      onRequest: async (request) => {
        if (await events.isHost(request.headers.authorization ?? '')) return;
        throw new ClientError('Unauthenticated', 'only registry hosts can call this operation');
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

/** Errors have the fields of distribution, too, and the status 401: its clients hide the reason of most other errors. */
async function answer(
  request: FastifyRequest,
  reply: FastifyReply,
  issue: (client: { address: string; isGone(): boolean }) => Promise<Token>,
): Promise<Token> {
  reply.header('cache-control', 'no-store');
  try {
    return await issue({ address: request.ip, isGone: () => reply.raw.destroyed });
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
