/** Turns whatever was thrown into the one error body, and never lets an inner fault show. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ClientError, invalidInput } from '../errors/catalogue.ts';
import { isUnavailable } from '../platform/db.ts';
import type { App } from './app.ts';
import { ValidationError } from './validation.ts';

export function errorHandling(app: App, deps: { repeatAnswer: Repeat }): void {
  app.setNotFoundHandler((request, reply) => {
    send(reply, request, new ClientError('NotFound', `there is no ${request.method} ${request.url.split('?')[0]}`));
  });
  app.setErrorHandler(async (error, request, reply) => {
    if (await deps.repeatAnswer(error, request, reply)) return reply;
    const told = asClientError(error);
    if (told.status >= 500) request.log.error({ err: error }, 'request failed');
    return send(reply, request, told);
  });
}

/** Answers for a request whose `Idempotency-Key` another one claimed meanwhile; false for every other error. */
export type Repeat = (error: unknown, request: FastifyRequest, reply: FastifyReply) => Promise<boolean>;

function send(reply: FastifyReply, request: FastifyRequest, error: ClientError): FastifyReply {
  return reply
    .code(error.status)
    .headers(error.headers)
    .type('application/json; charset=utf-8')
    .send(
      JSON.stringify({
        exception_class: error.code,
        message: error.message,
        request_id: request.id,
        ...(error.errors.length > 0 && { errors: error.errors }),
      }),
    );
}

function asClientError(error: unknown): ClientError {
  if (error instanceof ClientError) return error;
  if (error instanceof ValidationError) return invalidInput(error.errors);
  if (isUnavailable(error)) {
    return new ClientError('Unavailable', 'the database cannot be reached just now; try again in a moment', {
      headers: { 'retry-after': '1' },
    });
  }
  const { code, statusCode, message } = error as { code?: string; statusCode?: number; message?: string };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return new ClientError('BodyTooLarge', 'the body is larger than 1 MiB');
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    return new ClientError('UnsupportedMediaType', 'send the body as `Content-Type: application/json`');
  }
  // What else Fastify refuses is the request's fault: a broken body, a bad header, a path that cannot be decoded.
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return invalidInput([
      { path: '', message: (message ?? 'the request cannot be read').replace(/^body\b/i, 'the body') },
    ]);
  }
  return new ClientError('Internal', 'a fault of Cloudyard; the operator finds it in the log under the request id');
}
