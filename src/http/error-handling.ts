/** Turns whatever was thrown into the one error body, and never lets an inner fault show. */
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ClientError, invalidInput } from '../errors/catalogue.ts';
import { isUnavailable } from '../platform/db.ts';
import type { App } from './app.ts';
import { bodyTooLarge } from './json-body.ts';
import { ValidationError } from './validation.ts';

export function errorHandling(app: App, deps: { repeatAnswer: Repeat }): void {
  app.setErrorHandler(async (error, request, reply) => {
    let failure: unknown = error;
    try {
      if (await deps.repeatAnswer(error, request, reply)) return reply;
    } catch (other) {
      failure = other;
    }
    const told = asClientError(failure, request);
    if (told.status >= 500) request.log.error({ err: failure }, 'request failed');
    if (Number(request.headers['content-length']) <= drainable) reply.removeHeader('connection');
    return send(reply, request, told);
  });
}

/**
 * Fastify closes the connection after an error in a body, and who is cut off while sending may never see the answer.
 * What declares this many bytes at most is read to its end and thrown away instead, for as long as a
 * request may take (connection-limits.ts).
 */
const drainable = 16 * 1024 * 1024;

/** For requests that reach no route: a path that cannot be decoded, or a part of it that is too long. */
export function frameworkError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  send(reply.header('x-request-id', request.id), request, asClientError(error, request));
}

const unreadable: Record<string, { status: number; message: string }> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'the request did not arrive in time' },
  HPE_HEADER_OVERFLOW: { status: 431, message: 'the path and the headers are longer than 16 KiB' },
};

/** For what Node cannot read as a request, or has waited for too long. */
export function unreadableRequest(error: { code?: string }, socket: Socket): void {
  if (error.code !== 'ECONNRESET' && socket.writable && awaitsAnswer(socket)) {
    const { status, message } = unreadable[error.code ?? ''] ?? {
      status: 400,
      message: 'this is not a request of HTTP/1.1',
    };
    writeError(socket, status, invalidInput([{ path: '', message }]));
  }
  socket.destroy();
}

/**
 * Whether the client would take bytes for the answer to the request at fault. They would be taken for another one's while
 * an earlier request is unanswered, and for one that nobody made after an answer or where no byte was received.
 */
function awaitsAnswer(socket: Socket): boolean {
  const { parser } = socket as Socket & { parser?: { incoming?: IncomingMessage | null } | null };
  const incomplete = parser?.incoming && !parser.incoming.complete ? parser.incoming : null;
  const response = currentResponse(socket);
  if (socket.bytesRead === 0) return false;
  return response ? response.req === incomplete && !response.headersSent : incomplete === null;
}

/** The response that is being written to the socket. Node has no public name for it. */
export function currentResponse(socket: Socket): ServerResponse | null {
  const { _httpMessage: response } = socket as Socket & { _httpMessage?: ServerResponse | null };
  return response ?? null;
}

/** For a client that has too many connections. */
export function refuseConnection(socket: Socket): void {
  const message = 'too many open connections from your address; close some, then try again';
  writeError(socket, 503, new ClientError('Unavailable', message, { headers: { 'retry-after': '1' } }));
  socket.destroy();
}

/** Where there is no response to write to. */
function writeError(socket: Socket, status: number, error: ClientError): void {
  const body = errorBody(error, randomUUID());
  const headers = Object.entries(error.headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n${headers.join('')}` +
      `Content-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
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

function asClientError(error: unknown, request: FastifyRequest): ClientError {
  if (error instanceof ClientError) return error;
  if (error instanceof ValidationError) return invalidInput(error.errors);
  const { code, statusCode, message } = error as { code?: string; statusCode?: number; message?: string };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return bodyTooLarge(request);
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
    return new ClientError('Unavailable', 'the database cannot be reached; try again in a second', {
      headers: { 'retry-after': '1' },
    });
  }
  return new ClientError('Internal', `internal error; see the server log for request ${request.id}`);
}

function unreadablePath(message: string): ClientError {
  return invalidInput([{ path: '', message: `the path ${message}` }]);
}
