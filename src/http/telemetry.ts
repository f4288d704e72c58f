/** One log line and one observation a request. */
import type { App } from './app.ts';

export interface HttpMetrics {
  observeRequest(operation: string, status: number, seconds: number): void;
}

export function requestTelemetry(app: App, metrics: HttpMetrics): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
  });
  app.addHook('onResponse', async (request, reply) => {
    const seconds = reply.elapsedTime / 1000;
    metrics.observeRequest(request.routeOptions.schema?.operationId ?? 'none', reply.statusCode, seconds);
    request.log.info(
      {
        method: request.method,
        url: request.url,
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime * 100) / 100,
        tokenId: request.by?.actor.tokenId,
      },
      'request',
    );
  });
}
