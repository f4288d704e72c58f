/** Converts every thrown error into an error response. Details of internal errors are logged and never sent. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ClientError, invalidInput, unavailable } from '../errors/catalogue.ts';
import {
  exceededTimeLimit,
  hostShortageOf,
  isContended,
  isUnavailable,
  lacksFreeConnection,
  postgresCode,
  shortageOf,
} from '../platform/db-errors.ts';
import { KeyFileError } from '../platform/key-file.ts';
import { readOnly } from '../platform/primary-client.ts';
import { STATUS_CODES } from '../platform/node-http.ts';
import { currentResponse } from '../platform/requests-in-turn.ts';
import { methodNotAllowed } from './allowed-methods.ts';
import type { App } from './app.ts';
import { type IdempotencyDeps, repeatResponse } from './idempotency-keys.ts';
import { bodyTooLarge } from './json-body.ts';
import { errorsOf } from './request-errors.ts';
import { commonHeaders } from './security-headers.ts';
import { ValidationError } from './validation.ts';

export interface ErrorHandlingDeps extends IdempotencyDeps {
  /** Called for every request that failed because the database was not available. */
  onUnavailable?(error: unknown): void;
}

export function errorHandling(app: App, deps: ErrorHandlingDeps): void {
  app.setErrorHandler(async (error, request, reply) => {
    let failure: unknown = error;
    try {
      if (await repeatResponse(deps, error, request, reply)) return reply;
    } catch (other) {
      failure = other;
    }
    const clientError =
      failure instanceof ValidationError
        ? (methodNotAllowed(request) ?? invalidInput(await errorsOf(request, failure)))
        : asClientError(failure, request);
    if (clientError.code === 'Unavailable') deps.onUnavailable?.(failure);
    if (clientError.status >= 500) request.log.error({ reqId: request.id, err: failure }, 'request failed');
    const isDrainable = Number(request.headers['content-length']) <= drainable;
    // The server closes all connections when it stops (drain.ts), and their last responses announce it.
    if (isDrainable && reply.raw.shouldKeepAlive) reply.removeHeader('connection');
    return send(reply, request, clientError);
  });
}

/**
 * Fastify closes the connection after an error in a body, and a client that is still sending may miss the response. So
 * bodies of at most this declared length are read to their end and discarded, within the time limit of a request
 * (connection-limits.ts).
 */
const drainable = 16 * 1024 * 1024;

/** For requests without a route because the path cannot be decoded or a component of it is too long. */
export function frameworkError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  send(reply.headers(commonHeaders).header('x-request-id', request.id), request, asClientError(error, request));
}

const unreadable: Record<string, { status: number; message: string }> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'the request did not arrive in time' },
  HPE_HEADER_OVERFLOW: { status: 431, message: 'the path and the headers must not exceed 16 KiB' },
};

/** For requests that Node cannot parse, or that did not arrive in time. */
export function unreadableRequest(error: { code?: string }, socket: Socket): void {
  if (error.code !== 'ECONNRESET' && socket.writable && awaitsAnswer(socket)) {
    const { status, message } = unreadable[error.code ?? ''] ?? {
      status: 400,
      message: 'the request is not valid HTTP/1.1',
    };
    writeError(socket, status, invalidInput([{ path: '', message }]));
  }
  socket.destroy();
}

/**
 * Whether the client would read bytes as the response to the invalid request. While an earlier request has no response, the
 * client would read them as its response. Without a pending request, it would read them as a response to its next request.
 */
function awaitsAnswer(socket: Socket): boolean {
  const { parser } = socket as Socket & { parser?: { incoming?: IncomingMessage | null } | null };
  const incomplete = parser?.incoming && !parser.incoming.complete ? parser.incoming : null;
  const response = currentResponse(socket);
  if (socket.bytesRead === 0) return false;
  return response ? response.req === incomplete && !response.headersSent : incomplete === null;
}

/** Sends an error to a client with too many connections, and closes the connection. */
export function refuseConnection(socket: Socket): void {
  const message = 'too many open connections from your address; close some, then try again';
  writeError(socket, 503, unavailable(message));
  socket.destroy();
}

/** Rejects a request before the framework handles it, and closes the connection. `path`: the invalid header. */
export function refuseRequest(response: ServerResponse, path: string, message: string, status = 400): void {
  const id = randomUUID();
  const body = errorBody(invalidInput([{ path, message }]), id);
  const headers = {
    connection: 'close',
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'x-request-id': id,
    ...(status >= 500 && { 'x-should-retry': 'false' }),
  };
  response.writeHead(status, headers).end(body);
}

/** Writes an error response without a response object of Node. */
function writeError(socket: Socket, status: number, error: ClientError): void {
  const id = randomUUID();
  const body = errorBody(error, id);
  const headers = Object.entries(error.headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nX-Request-Id: ${id}\r\n${headers.join('')}` +
      `Content-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

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
  const { code, statusCode, message } = error as { code?: string; statusCode?: number; message?: string };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return bodyTooLarge(request);
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    return new ClientError('UnsupportedMediaType', 'send the body as `Content-Type: application/json`');
  }
  if (code === 'FST_ERR_CTP_INVALID_JSON_BODY')
    return invalidInput([{ path: '', message: 'the body is not valid JSON' }]);
  if (code === 'FST_ERR_BAD_URL') return unreadablePath('is not percent-encoded UTF-8');
  if (code === 'FST_ERR_MAX_PARAM_LENGTH') return unreadablePath('has a component that is too long');
  // Other errors of Fastify are caused by the request: a malformed body, an invalid header, or a client that disconnected
  // (ECONNRESET, which `isUnavailable` would attribute to the database).
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return invalidInput([
      { path: '', message: (message ?? 'the request cannot be read').replace(/^body\b/i, 'the body') },
    ]);
  }
  if (error instanceof KeyFileError) {
    return unavailable('the encryption keys cannot be used; the operator must fix the key file');
  }
  const timeLimit = exceededTimeLimit(error);
  if (timeLimit !== null || isUnavailable(error)) {
    return unavailable(`${whyUnavailable(error, timeLimit)}; try again in a second`);
  }
  return new ClientError('Internal', `internal error; see the server log for request ${request.id}`);
}

function whyUnavailable(error: unknown, timeLimit: string | null): string {
  const shortage = shortageOf(error);
  if (shortage !== null) return `the database ${shortage}; the operator must fix it`;
  const hostShortage = hostShortageOf(error);
  if (hostShortage !== null) return `${hostShortage}; the operator must fix it`;
  if (timeLimit === 'lock_timeout')
    return 'another session of the database locks what the request needs (lock_timeout)';
  if (timeLimit !== null) return `the database is overloaded: a statement exceeded its ${timeLimit}`;
  if (isContended(error)) return 'the database is overloaded';
  if (lacksFreeConnection(error)) return 'all connections of this server to the database are in use';
  return postgresCode(error) === readOnly ? 'the database is read-only' : 'the database cannot be reached';
}

function unreadablePath(message: string): ClientError {
  return invalidInput([{ path: '', message: `the path ${message}` }]);
}
