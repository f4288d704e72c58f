/** Headers that restrict what browsers do with a response. Routes that return pages replace the policy with their own. */
import type { App } from './app.ts';

/** Of every response of Fastify. Granted requests to `authorize` are answered without it, and without a body. */
export const commonHeaders = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
};

/** `hstsSeconds`: how long browsers use HTTPS only, after a response by HTTPS; 0: not sent. */
export function securityHeaders(app: App, hstsSeconds = 0): void {
  const transport = hstsSeconds > 0 ? `max-age=${hstsSeconds}` : null;
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(commonHeaders);
    if (transport !== null && request.protocol === 'https') reply.header('strict-transport-security', transport);
    done();
  });
}
