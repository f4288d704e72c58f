/** Turns whatever was thrown into the one error body, and never lets an inner fault show. */
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
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
    let failure: unknown = error;
    try {
      if (await deps.repeatAnswer(error, request, reply)) return reply;
    } catch (other) {
      failure = other;
    }
    const told = asClientError(failure);
    if (told.status >= 500) request.log.error({ err: failure }, 'request failed');
    if (Number(request.headers['content-length']) <= drainable) reply.removeHeader('connection');
    return send(reply, request, told);
  });
}

/**
 * Fastify closes the connection after an error in a body, and who is cut off while sending may never see the answer.
 * What declares this many bytes at most is read to its end and thrown away instead.
 */
const drainable = 16 * 1024 * 1024;

/** For requests that reach no route: a path that cannot be decoded, or a part of it that is too long. */
export function frameworkError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  send(reply.header('x-request-id', request.id), request, asClientError(error));
}

const unreadable: Record<string, { status: number; message: string }> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'the request did not arrive in time' },
  HPE_HEADER_OVERFLOW: { status: 431, message: 'the path and the headers are longer than 16 KiB' },
};

/** For what Node cannot read as a request. */
export function unreadableRequest(error: { code?: string }, socket: Socket): void {
  if (error.code !== 'ECONNRESET' && socket.writable) {
    const { status, message } = unreadable[error.code ?? ''] ?? {
      status: 400,
      message: 'this is not a request of HTTP/1.1',
    };
    const body = errorBody(invalidInput([{ path: '', message }]), randomUUID());
    socket.write(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n` +
        `Content-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
  }
  socket.destroy();
}

/**
 * Answers for a request whose `Idempotency-Key` another one claimed meanwhile; false for every other error.
 * @throws ClientError 409 when that one asked for something else
 */
export type Repeat = (error: unknown, request: FastifyRequest, reply: FastifyReply) => Promise<boolean>;

function send(reply: FastifyReply, request: FastifyRequest, error: ClientError): FastifyReply {
  return reply
    .code(error.status)
    .headers(error.headers)
    .type('application/json; charset=utf-8')
    .send(errorBody(error, request.id));
}

function errorBody(error: ClientError, requestId: string): string {
  return JSON.stringify({
    exception_class: error.code,
    message: error.message,
    request_id: requestId,
    ...(error.errors.length > 0 && { errors: error.errors }),
  });
}

function asClientError(error: unknown): ClientError {
  if (error instanceof ClientError) return error;
  if (error instanceof ValidationError) return invalidInput(error.errors);
  const { code, statusCode, message } = error as { code?: string; statusCode?: number; message?: string };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new ClientError('BodyTooLarge', 'the body is larger than 1 MiB, or 8 MiB for an API key');
  }
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    return new ClientError('UnsupportedMediaType', 'send the body as `Content-Type: application/json`');
  }
  if (code === 'FST_ERR_BAD_URL') return unreadablePath('is not percent-encoded UTF-8');
  if (code === 'FST_ERR_MAX_PARAM_LENGTH') return unreadablePath('has a part that is too long to name anything');
  // What else Fastify refuses is the request's fault: a broken body, a bad header, a client that hung up (ECONNRESET,
  // which would be the database's fault below).
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return invalidInput([
      { path: '', message: (message ?? 'the request cannot be read').replace(/^body\b/i, 'the body') },
    ]);
  }
  if (isUnavailable(error)) {
    return new ClientError('Unavailable', 'the database cannot be reached just now; try again in a moment', {
      headers: { 'retry-after': '1' },
    });
  }
  return new ClientError('Internal', 'a fault of Cloudyard; the operator finds it in the log under the request id');
}

function unreadablePath(message: string): ClientError {
  return invalidInput([{ path: '', message: `the path ${message}` }]);
}
