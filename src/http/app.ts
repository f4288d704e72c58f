/**
 * The HTTP side: one Fastify app that authenticates, authorizes, validates, counts and logs every request, so that a
 * route only says what it is. Resources bring routes; main/ brings what they need.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import swagger from '@fastify/swagger';
import Fastify, { LogController } from 'fastify';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyServerFactory,
  FastifyTypeProvider,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import type { Logger } from 'pino';
import type { Static, TSchema } from 'typebox';
import type { RequestContext, Scope } from '../authz/actor.ts';
import { invalidInput } from '../errors/catalogue.ts';
import { policy } from '../authz/policy.ts';
import { authorization } from './authorization.ts';
import type { AuthorizationDeps } from './authorization.ts';
import { errorHandling, frameworkError, unreadableRequest } from './error-handling.ts';
import { idempotencyKeys, repeatAnswer } from './idempotency-keys.ts';
import type { IdempotencyDeps } from './idempotency-keys.ts';
import { openApiDocument } from './openapi.ts';
import { rateLimit } from './rate-limit.ts';
import { requestTelemetry } from './telemetry.ts';
import type { HttpMetrics } from './telemetry.ts';
import { compileValidator } from './validation.ts';

interface TypeBoxProvider extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? Static<this['schema']> : unknown;
  serializer: this['schema'] extends TSchema ? Static<this['schema']> : unknown;
}

export type App = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxProvider
>;

/** The routes of one resource. */
export type Routes = (app: App) => void;

declare module 'fastify' {
  interface FastifyRequest {
    /** Who asks, and under which request id. Absent on public routes only. */
    by: RequestContext;
    /** The project and region that the path names; what is not in the path is undefined. */
    scope: Scope;
  }
}

/** For what is asked so often that the framework would cost more than the answer. */
export type QuickAnswer = (request: IncomingMessage, response: ServerResponse) => boolean;

export interface AppOptions extends AuthorizationDeps, IdempotencyDeps {
  log: Logger;
  metrics: HttpMetrics;
  /** Requests a minute and token; 0: no limit. */
  rateLimit: number;
  /** Requests that come before this is settled wait for it. */
  holdUntil?: Promise<unknown> | undefined;
  /** Hears of a request before the framework does: true when it has answered. */
  quick?: QuickAnswer | undefined;
  routes: Routes[];
}

const bodyLimit = 1024 * 1024;

export async function createApp(options: AppOptions): Promise<App> {
  const fastify = Fastify({
    loggerInstance: options.log,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit,
    genReqId: () => randomUUID(),
    forceCloseConnections: 'idle',
    ...(options.quick && { serverFactory: serverWith(options.quick) }),
    frameworkErrors: frameworkError,
    clientErrorHandler: unreadableRequest,
    routerOptions: { maxParamLength: 500, ignoreTrailingSlash: true },
  });
  const app = fastify.withTypeProvider<TypeBoxProvider>() as unknown as App;
  app.setValidatorCompiler(compileValidator as never);
  app.decorateRequest('by', undefined as never);
  app.decorateRequest('scope', undefined as never);
  parseJsonBodies(app);
  await app.register(swagger, openApiDocument);
  app.addHook('onRoute', (route) => {
    if (route.method === 'HEAD' || route.schema?.hide) return;
    const operation = route.schema?.operationId;
    if (!operation || !(operation in policy)) throw new Error(`${route.method} ${route.url} has no line in the policy`);
  });
  if (options.holdUntil) holdRequests(app, options.holdUntil);
  errorHandling(app, { repeatAnswer: repeatAnswer(options) });
  requestTelemetry(app, options.metrics);
  authorization(app, options);
  await rateLimit(app, options.rateLimit);
  idempotencyKeys(app, options);
  await app.register(async (scoped) => {
    for (const routes of options.routes) routes(scoped as unknown as App);
  });
  return app;
}

/** As Fastify makes its own. A server that closes leaves all to Fastify, which ends the connections of its clients. */
function serverWith(quick: QuickAnswer): FastifyServerFactory {
  return (handle, options) => {
    const server = createServer(options.http ?? {}, (request, response) => {
      if (!server.listening || !quick(request, response)) void handle(request, response);
    });
    const { keepAliveTimeout, requestTimeout, connectionTimeout } = options as Record<string, number>;
    server.keepAliveTimeout = keepAliveTimeout!;
    server.requestTimeout = requestTimeout!;
    server.setTimeout(connectionTimeout);
    return server;
  };
}

/** With a callback, because every request passes here: see telemetry.ts. */
function holdRequests(app: App, until: Promise<unknown>): void {
  let held = true;
  const over = until.then(
    () => (held = false),
    () => (held = false),
  );
  app.addHook('onRequest', (_request, _reply, done) => {
    if (held) void over.then(() => done());
    else done();
  });
}

/** JSON only; an empty body is no body (clients send the content type with a DELETE, too). */
function parseJsonBodies(app: App): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null, undefined);
    else if (nestsDeeply(body as string)) done(invalidInput([{ path: '', message: tooDeep }]), undefined);
    else parse(request, body as string, done);
  });
}

const maxDepth = 50;
const tooDeep = `the body must not nest objects and arrays more than ${maxDepth} deep`;

/** What walks through a body recurses: a deeper one than any schema knows would end in a stack overflow. */
function nestsDeeply(json: string): boolean {
  let depth = 0;
  let inText = false;
  for (let i = 0; i < json.length; i++) {
    const char = json[i];
    if (inText && char === '\\') i += 1;
    else if (char === '"') inText = !inText;
    else if (inText) continue;
    else if (char === ']' || char === '}') depth -= 1;
    else if ((char === '[' || char === '{') && ++depth > maxDepth) return true;
  }
  return false;
}
