import fastifyRateLimit from '@fastify/rate-limit';
import { ClientError } from '../errors/catalogue.ts';
import type { App } from './app.ts';

/** At most `perMinute` requests a minute and token, on each server; 0: no limit. */
export async function rateLimit(app: App, perMinute: number): Promise<void> {
  if (perMinute === 0) return;
  await app.register(fastifyRateLimit, {
    global: true,
    max: perMinute,
    timeWindow: '1 minute',
    hook: 'preValidation',
    keyGenerator: (request) => String(request.by?.actor.tokenId ?? request.ip),
    allowList: (request) => !request.by,
    errorResponseBuilder: (_request, context) =>
      new ClientError('TooManyRequests', `more than ${perMinute} requests a minute; try again in ${context.after}`),
  });
}
