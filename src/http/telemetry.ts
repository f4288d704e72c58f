/** One log line and one observation a request. */
import type { App } from './app.ts';

export interface HttpMetrics {
  observeRequest(operation: string, status: number, seconds: number): void;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Neither timed nor logged: there are so many of these requests that it would cost as much as they do. */
    quiet?: boolean;
  }
}

export function requestTelemetry(app: App, metrics: HttpMetrics): void {
  // Hooks of every request take a callback: a promise for each of them would cost a tenth of a small answer.
  app.addHook('onRequest', (request, reply, done) => {
    if (!request.routeOptions.config.quiet) reply.header('x-request-id', request.id);
    done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    if (request.routeOptions.config.quiet) return done();
    const seconds = reply.elapsedTime / 1000;
    metrics.observeRequest(request.routeOptions.schema?.operationId ?? 'none', reply.statusCode, seconds);
    const level = isProbe(request.routeOptions.url, reply.statusCode) ? 'debug' : 'info';
    request.log[level](
      {
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

/** Orchestrators call these every second; a failure is still logged at info. */
function isProbe(path: string | undefined, status: number): boolean {
  return status < 400 && (path === '/healthz' || path === '/readyz' || path === '/metrics');
}
