/** Writes one log line and records one duration for each request, and sets the headers of every response to it. */
import { type Logger, requestWriter } from '../platform/log.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Metrics } from '../platform/metrics.ts';
import type { Tracer } from '../platform/tracing/tracer.ts';
import type { App } from './app.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Neither measured nor logged, for requests so frequent and cheap that telemetry would double their cost. */
    quiet?: boolean;
    /** Logged, but not measured: it lasts as long as the client wants. */
    isStream?: boolean;
  }
}

interface TelemetryOptions {
  log: Logger;
  metrics: Pick<Metrics, 'observeRequest'>;
  tracer?: Tracer | null | undefined;
}

/** Adds the hooks. Call it before others that read `request.route`, which it sets. */
export function requestTelemetry(app: App, { log, metrics, tracer }: TelemetryOptions): void {
  const write = requestWriter(log);
  // Hooks of every request use a callback: a promise for each hook would cost a tenth of a small response.
  app.addHook('onRequest', (request, reply, done) => {
    const { config, schema } = (request.route = request.routeOptions);
    if (!config.quiet) reply.header('x-request-id', request.id);
    // Before authorization, so that each response has the header.
    if (schema?.deprecated) reply.header('deprecation', 'true');
    done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    // A request that Fastify cannot route has not passed the hook above.
    const { config, schema, url } = request.route ?? request.routeOptions;
    if (config.quiet) return done();
    const { statusCode: status, elapsedTime } = reply;
    if (!config.isStream || status >= 400) {
      metrics.observeRequest(schema?.operationId ?? 'none', status, elapsedTime / 1000);
    }
    if (tracer) trace(tracer, request, reply);
    write(isProbe(url, status) ? 'debug' : 'info', {
      reqId: request.id,
      method: request.method,
      url: request.url,
      status,
      ms: Math.round(elapsedTime * 100) / 100,
      tokenId: request.by?.actor.tokenId,
    });
    done();
  });
}

/** Attributes have the names of OpenTelemetry's conventions for HTTP. */
function trace(tracer: Tracer, request: FastifyRequest, reply: FastifyReply): void {
  const { method, route = request.routeOptions, by } = request;
  if (isProbe(route.url, reply.statusCode)) return;
  const { operationId = 'none' } = route.schema ?? {};
  const { traceparent } = request.headers;
  tracer.request({
    ...{ id: request.id, name: operationId, startedAt: Date.now() - reply.elapsedTime },
    traceparent: typeof traceparent === 'string' ? traceparent : undefined,
    attributes: {
      ...{ 'http.request.method': method, 'http.response.status_code': reply.statusCode },
      ...(route.url !== undefined && { 'http.route': route.url }),
      ...(by && { 'cloudyard.client_id': by.actor.clientId }),
    },
    ...(reply.statusCode >= 500 && { error: String(reply.statusCode) }),
  });
}

/** Orchestrators call these every second, so success is logged at debug and failure at info. */
function isProbe(path: string | undefined, status: number): boolean {
  return status < 400 && (path === '/healthz' || path === '/readyz' || path === '/metrics');
}
