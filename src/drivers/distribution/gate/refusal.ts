/** Error responses of the gate, in the format of distribution: clients show `message`. */
import type { IncomingMessage, ServerResponse } from 'node:http';

export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  readonly retryAfter: number | null;
  constructor(status: number, code: string, message: string, retryAfter: number | null = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter;
  }
}

/** How long a client may continue to send its body after a response. */
const lingerMs = 5000;

/** Responds in the format of the registry API, and closes the connection if the client continues to send its body. */
export function refuse(request: IncomingMessage, response: ServerResponse, refusal: Refusal): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const { status, code, message, retryAfter } = refusal;
  const text = JSON.stringify({ errors: [{ code, message, detail: null }] });
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'docker-distribution-api-version': 'registry/2.0',
    'content-length': Buffer.byteLength(text),
    ...(retryAfter !== null && { 'retry-after': String(retryAfter) }),
  });
  response.end(request.method === 'HEAD' ? undefined : text);
  discard(request);
}

/** Discards the rest of the body for a while before it resets the connection: a reset would also discard the response. */
export function discard(request: IncomingMessage): void {
  if (request.complete) return;
  request.resume();
  const timer = setTimeout(() => request.socket.destroy(), lingerMs);
  request.once('end', () => clearTimeout(timer)).once('close', () => clearTimeout(timer));
}
