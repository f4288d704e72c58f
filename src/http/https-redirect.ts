/**
 * Redirects HTTP to HTTPS, on a separate port, and serves the challenges of ACME (HTTP-01). It has the connection limits
 * of the API.
 */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from '../platform/log.ts';
import { limitedServer } from './connection-limits.ts';
import { createDrain } from './drain.ts';

interface RedirectOptions {
  host: string;
  port: number;
  /** The URL that clients use; absent: the host of the request and the port of the API. */
  publicUrl: string | undefined;
  /** The port of the API. */
  httpsPort: number;
  log: Logger;
  /** The response to a challenge; null for an unknown token. */
  findChallenge?: (token: string) => Promise<string | null>;
}

const challengePath = /^\/\.well-known\/acme-challenge\/([\w-]{1,200})$/;
/** A host name or an address, without a port. */
const hostPattern = /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]+\])(?=:\d{1,5}$|$)/i;

/** Listens. @throws if the port is in use */
export async function startHttpsRedirect(options: RedirectOptions): Promise<{ port: number; stop(): Promise<void> }> {
  const { host, port, log, findChallenge = async () => null } = options;
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const token = challengePath.exec(request.url ?? '')?.[1];
    const challenge = token === undefined ? null : await findChallenge(token);
    if (challenge !== null) return send(response, 200, challenge);
    const location = locationOf(request, options);
    if (location === null) return send(response, 400, 'the header Host is not a host name');
    response.setHeader('location', location);
    send(response, 308, `use ${location}`);
  };
  const server = limitedServer({ log })((request, response) => {
    handle(request, response as ServerResponse).catch((error: unknown) => {
      log.error({ err: error }, 'a challenge cannot be read');
      send(response as ServerResponse, 503, 'try again later');
    });
  }, {});
  server.on('clientError', (_error, socket) => socket.destroy());
  const drain = createDrain(server as Parameters<typeof createDrain>[0]);
  server.listen({ host, port });
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, stop: drain.drain };
}

function locationOf(request: IncomingMessage, { publicUrl, httpsPort }: RedirectOptions): string | null {
  const path = request.url?.startsWith('/') ? request.url : '/';
  if (publicUrl?.startsWith('https:')) return `${publicUrl}${path}`;
  const host = hostPattern.exec(request.headers.host ?? '')?.[0];
  if (host === undefined) return null;
  return `https://${host}${httpsPort === 443 ? '' : `:${httpsPort}`}${path}`;
}

function send(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' });
  response.end(text);
}
