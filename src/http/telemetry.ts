/** One log line and one observation a request. */
import type { App } from './app.ts';

export interface HttpMetrics {
  observeRequest(operation: string, status: number, seconds: number): void;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Requests are logged with the level debug, because there are so many of them. */
    quiet?: boolean;
  }
}

export function requestTelemetry(app: App, metrics: HttpMetrics): void {
  // Hooks of every request take a callback: a promise for each of them would cost a tenth of a small answer.
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    const seconds = reply.elapsedTime / 1000;
    metrics.observeRequest(request.routeOptions.schema?.operationId ?? 'none', reply.statusCode, seconds);
    request.log[request.routeOptions.config.quiet ? 'debug' : 'info'](
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
