/**
 * The Fastify app. Its hooks authenticate, authorize, limit, validate, measure and log every request, so a route contains
 * only its own work. Resources supply the routes, and main/ supplies the dependencies.
 */
import { randomUUID } from 'node:crypto';
import swagger from '@fastify/swagger';
import Fastify, { LogController } from 'fastify';
import { type ClientError, unavailable } from '../errors/catalogue.ts';
import type { Logger } from '../platform/log.ts';
import type { Metrics } from '../platform/metrics.ts';
import { defaultSettings } from '../platform/settings.ts';
import type { CertificateSource } from '../platform/tls/certificate.ts';
import type { Tracer } from '../platform/tracing/tracer.ts';
import type { App, Routes, TypeBoxProvider } from './app.ts';
import { type AnonymousLimits, createAnonymousLimit } from './anonymous-limit.ts';
import { authorization, type AuthorizationDeps } from './authorization.ts';
import { type ConnectionLimits, limitedServer, type QuickAnswer } from './connection-limits.ts';
import { clientLimits, type ClientLimitsOptions } from './client-limits.ts';
import { securityHeaders } from './security-headers.ts';
import { createDrain } from './drain.ts';
import { errorHandling, type ErrorHandlingDeps, frameworkError, unreadableRequest } from './error-handling.ts';
import { idempotencyKeys } from './idempotency-keys.ts';
import { jsonBodies, smallestBodyLimit } from './json-body.ts';
import { lazyCompilers } from './lazy-compilers.ts';
import { openApiOptions } from './openapi.ts';
import { requestTelemetry } from './telemetry.ts';
import { timeLimit, type TimeLimitOptions } from './time-limit.ts';

/** How a server serves the app. */
export interface ServerOptions extends Pick<AuthorizationDeps, 'publicUrl'> {
  log: Logger;
  /** Absent: those of the default settings. */
  clientLimits?: ClientLimitsOptions['limits'];
  rates?: ClientLimitsOptions['rates'];
  /** Whether requests wait for `admitRequests`. */
  isHeld?: boolean;
  /** Overrides of the defaults. */
  connectionLimits?: Partial<ConnectionLimits> | undefined;
  anonymousLimits?: AnonymousLimits | undefined;
  timeLimit?: Partial<TimeLimitOptions> | undefined;
  /** CIDRs of the proxies whose `X-Forwarded-For` is trusted. Default: none. */
  trustedProxies?: string[] | undefined;
  /** Serves HTTPS. Absent: plain HTTP. */
  certificate?: CertificateSource | undefined;
  /** Absent: requests have no traces. */
  tracer?: Tracer | null | undefined;
  /** How long browsers use HTTPS only; 0: not limited. */
  hstsSeconds?: number | undefined;
}

export interface AppOptions extends ServerOptions, AuthorizationDeps, ErrorHandlingDeps {
  metrics: Metrics;
  /** Connections of the database pool. */
  poolSize: number;
  /** The time, in development mode. */
  movedNow?: (() => Date) | undefined;
  /** Responds to frequent requests before Fastify, whose overhead would exceed the cost of the response. */
  quick?: QuickAnswer | undefined;
  routes: Routes[];
}

/**
 * Creates the app, which listens when the caller says so. Hooks run in the order in which they are added here. @throws
 * Error for a route without access, or with an unbounded schema
 */
export async function createApp(options: AppOptions): Promise<App> {
  const fastify = Fastify({
    loggerInstance: sharedLogger(options.log),
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: smallestBodyLimit,
    genReqId: () => randomUUID(),
    forceCloseConnections: 'idle',
    // Only for the URLs that Fastify logs and returns.
    ...(options.certificate && { https: {} as unknown as null }),
    serverFactory: limitedServer({ ...options, limits: options.connectionLimits }),
    trustProxy: options.trustedProxies?.length ? options.trustedProxies : false,
    frameworkErrors: frameworkError,
    clientErrorHandler: unreadableRequest,
    routerOptions: { maxParamLength: 500, ignoreTrailingSlash: true },
  });
  const app = fastify.withTypeProvider<TypeBoxProvider>() as unknown as App;
  lazyCompilers(app);
  app.decorateRequest('by', undefined as never);
  app.decorateRequest('scope', undefined as never);
  app.decorateRequest('route', undefined as never);
  app.decorate('anonymousLimit', createAnonymousLimit(options.anonymousLimits));
  app.decorate('drain', createDrain(fastify.server));
  jsonBodies(app);
  app.decorate('declaredTags', new Map());
  await app.register(swagger, openApiOptions(app));
  holdRequests(app, options.isHeld);
  if (options.movedNow) datesOf(app, options.movedNow);
  errorHandling(app, options);
  requestTelemetry(app, options);
  timeLimit(app, options.timeLimit);
  securityHeaders(app, options.hstsSeconds);
  authorization(app, options);
  clientLimits(app, { ...options, limits: options.clientLimits ?? defaultSettings.clientLimits });
  idempotencyKeys(app, options);
  await app.register(async (scoped) => {
    for (const routes of options.routes) routes(scoped as unknown as App);
  });
  return app;
}

/**
 * A logger that is its own child: most requests log only the line of telemetry.ts, and log lines name the request by
 * themselves. Fastify examines the loggers of a factory of one's own for each request.
 */
function sharedLogger(log: Logger): Logger {
  const shared: Logger = Object.create(log, { child: { value: () => shared } });
  return shared;
}

/** The header `Date` is the time of the clock that clients move, so that they can compare it with the times in responses. */
function datesOf(app: App, now: () => Date): void {
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('date', now().toUTCString());
    done();
  });
}

/** Uses a callback: see telemetry.ts. */
function holdRequests(app: App, isHeld = false): void {
  const { promise: over, resolve } = Promise.withResolvers<ClientError | undefined>();
  app.decorate('admitRequests', () => {
    isHeld = false;
    resolve(undefined);
  });
  app.decorate('refuseRequests', () => resolve(unavailable('the server could not start; try again in a few seconds')));
  app.addHook('onRequest', (_request, _reply, done) => {
    if (isHeld) void over.then(done);
    else done();
  });
}
