/** Answers of the gate, in distribution's words: its clients show `message`. */
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

/** How long a client may take to notice an answer that came before the end of its body. */
const lingerMs = 5000;

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

/** Reads on for a moment, because a connection that is reset takes the answer with it; then it is reset. */
export function discard(request: IncomingMessage): void {
  if (request.complete) return;
  request.resume();
  const timer = setTimeout(() => request.socket.destroy(), lingerMs);
  request.once('end', () => clearTimeout(timer)).once('close', () => clearTimeout(timer));
}
