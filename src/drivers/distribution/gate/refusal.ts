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
  if (request.method !== 'HEAD') response.write(text);
  void endAfterBody(request, response);
}

/**
 * Discards the rest of the body for a while before it ends the response: a connection with `Connection: close`, as skopeo sends
 * it, is closed at the end of the response, and a reset would also discard the response.
 */
export async function endAfterBody(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (!request.complete && !request.destroyed) {
    // The response may have no body.
    response.flushHeaders();
    request.resume();
    const timer = setTimeout(() => request.socket.destroy(), lingerMs);
    await new Promise((resolve) => request.once('end', resolve).once('close', resolve));
    clearTimeout(timer);
  }
  response.end();
}
