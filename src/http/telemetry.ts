/** Writes one log line and records one duration for each request. */
import { withoutRedaction } from '../platform/log.ts';
import type { Logger } from '../platform/log.ts';
import type { App } from './app.ts';

export interface HttpMetrics {
  observeRequest(operation: string, status: number, seconds: number): void;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Neither measured nor logged, for requests so frequent and cheap that telemetry would double their cost. */
    quiet?: boolean;
    /** Logged, but not measured: it lasts as long as the client wants. */
    isStream?: boolean;
  }
}

export function requestTelemetry(app: App, { log, metrics }: { log: Logger; metrics: HttpMetrics }): void {
  const lines = withoutRedaction(log);
  // Hooks of every request use a callback: a promise for each hook would cost a tenth of a small response.
  app.addHook('onRequest', (request, reply, done) => {
    if (!request.routeOptions.config.quiet) reply.header('x-request-id', request.id);
    done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    if (request.routeOptions.config.quiet) return done();
    const { config, schema } = request.routeOptions;
    if (!config.isStream || reply.statusCode >= 400) {
      metrics.observeRequest(schema?.operationId ?? 'none', reply.statusCode, reply.elapsedTime / 1000);
    }
    const level = isProbe(request.routeOptions.url, reply.statusCode) ? 'debug' : 'info';
    lines[level](
      {
        reqId: request.id,
        method: request.method,
        url: request.url,
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime * 100) / 100,
        tokenId: request.by?.actor.tokenId,
      },
      'request',
    );
    done();
  });
}

/** Orchestrators call these every second, so success is logged at debug and failure at info. */
function isProbe(path: string | undefined, status: number): boolean {
  return status < 400 && (path === '/healthz' || path === '/readyz' || path === '/metrics');
}
