/**
 * The HTTP side: one Fastify app that authenticates, authorizes, validates, counts and logs every request, so that a
 * route only says what it is. Resources bring routes; main/ brings what they need.
 */
import { randomUUID } from 'node:crypto';
import swagger from '@fastify/swagger';
import Fastify, { LogController } from 'fastify';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyTypeProvider,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import type { Logger } from 'pino';
import type { Static, TSchema } from 'typebox';
import type { RequestContext, Scope } from '../authz/actor.ts';
import { policy } from '../authz/policy.ts';
import { createAnonymousLimit } from './anonymous-limit.ts';
import type { AnonymousLimits } from './anonymous-limit.ts';
import { authorization } from './authorization.ts';
import type { AuthorizationDeps } from './authorization.ts';
import { limitedServer } from './connection-limits.ts';
import type { ConnectionLimits, QuickAnswer } from './connection-limits.ts';
import { clientLimits } from './client-limits.ts';
import type { ClientLimitsOptions } from './client-limits.ts';
import { errorHandling, frameworkError, unreadableRequest } from './error-handling.ts';
import { idempotencyKeys, repeatAnswer } from './idempotency-keys.ts';
import type { IdempotencyDeps } from './idempotency-keys.ts';
import { jsonBodies, smallestBodyLimit } from './json-body.ts';
import { openApiDocument } from './openapi.ts';
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

export interface AppOptions extends AuthorizationDeps, IdempotencyDeps {
  log: Logger;
  metrics: HttpMetrics & ClientLimitsOptions['metrics'];
  clientLimits: ClientLimitsOptions['limits'];
  /** Connections of the database pool. */
  poolSize: number;
  /** Requests that come before this is settled wait for it. */
  holdUntil?: Promise<unknown> | undefined;
  /** For what is asked so often that the framework would cost more than the answer. */
  quick?: QuickAnswer | undefined;
  /** Where they differ from the default ones. */
  connectionLimits?: Partial<ConnectionLimits> | undefined;
  anonymousLimits?: AnonymousLimits | undefined;
  /** CIDRs of the proxies whose `X-Forwarded-For` is believed; none where not given. */
  trustedProxies?: string[] | undefined;
  routes: Routes[];
}

export async function createApp(options: AppOptions): Promise<App> {
  const fastify = Fastify({
    loggerInstance: options.log,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: smallestBodyLimit,
    genReqId: () => randomUUID(),
    forceCloseConnections: 'idle',
    serverFactory: limitedServer({ ...options, limits: options.connectionLimits }),
    trustProxy: options.trustedProxies?.length ? options.trustedProxies : false,
    frameworkErrors: frameworkError,
    clientErrorHandler: unreadableRequest,
    routerOptions: { maxParamLength: 500, ignoreTrailingSlash: true },
  });
  const app = fastify.withTypeProvider<TypeBoxProvider>() as unknown as App;
  app.setValidatorCompiler(compileValidator as never);
  app.decorateRequest('by', undefined as never);
  app.decorateRequest('scope', undefined as never);
  app.decorate('anonymousLimit', createAnonymousLimit(options.anonymousLimits));
  jsonBodies(app);
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
  clientLimits(app, { limits: options.clientLimits, poolSize: options.poolSize, metrics: options.metrics });
  idempotencyKeys(app, options);
  await app.register(async (scoped) => {
    for (const routes of options.routes) routes(scoped as unknown as App);
  });
  return app;
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
