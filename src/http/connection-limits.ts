/**
 * The HTTP server of the API, with the limits that apply before a request is authenticated.
 *
 * Invariant: a client that sends or reads slowly holds a connection for a bounded time, and the clients of one address
 * hold only a part of the connections. A request that waits for a task (`?wait=`) is not limited here.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import {
  createServer as createTlsServer,
  Server as TlsServer,
  type ServerOptions as ServerOptionsOfTls,
} from 'node:https';
import type { Socket } from 'node:net';
import type { FastifyServerFactory } from 'fastify';
import { descriptorLimit } from '../platform/descriptors.ts';
import type { Logger } from '../platform/log.ts';
import { isInNetworks, sourceOf } from '../platform/network-address.ts';
import { createServer } from '../platform/node-http.ts';
import { inTurn } from '../platform/requests-in-turn.ts';
import type { Certificate, CertificateSource } from '../platform/tls/certificate.ts';
import { hasUnknownCoding, onlyChunked } from '../platform/transfer-coding.ts';
import { refuseConnection, refuseRequest } from './error-handling.ts';

export type ConnectionLimits = ReturnType<typeof defaultConnectionLimits>;

const mostConnections = 8192;
/** For the database, logs, drivers and files. */
const reservedDescriptors = 256;

/** `descriptors`: the files that the process may have open, of which most are for connections. */
export function defaultConnectionLimits(descriptors = descriptorLimit()) {
  const connections = Math.min(Math.max(descriptors - reservedDescriptors, 64), mostConnections);
  return {
    /** From the first byte of a request, or from the start of the connection, until all headers have arrived. */
    headersSeconds: 15,
    /** From the same moment until the body has arrived. */
    requestSeconds: 120,
    /**
     * Between two requests. Longer than nginx keeps idle upstream connections (60 s), so that nginx never sends a request on a
     * closed connection.
     */
    idleSeconds: 72,
    /** How long a client may read nothing of a response. */
    stalledSeconds: 60,
    /** The interval of checks of the times above. */
    checkSeconds: 5,
    /** Open connections in total and of one address. IPv6 addresses count by their /64 network. */
    connections,
    connectionsPerAddress: Math.floor(connections / 4),
    /** Requests that a client may pipeline before it receives the first response. */
    pipelinedRequests: 16,
  };
}

/** Responds and returns true, or leaves the request to the framework and returns false. */
export type QuickAnswer = (request: IncomingMessage, response: ServerResponse) => boolean;

interface ServerOptions {
  /** Overrides of the defaults. */
  limits?: Partial<ConnectionLimits> | undefined;
  log: Logger;
  quick?: QuickAnswer | undefined;
  /** CIDRs of proxies, whose connections carry the requests of many clients. */
  trustedProxies?: readonly string[] | undefined;
  /** Serves HTTPS with the certificate of this source. Absent: plain HTTP. */
  certificate?: CertificateSource | undefined;
}

/** Returns a function that makes the server of an app. */
export function limitedServer({
  log,
  quick,
  trustedProxies = [],
  certificate,
  limits: overrides,
}: ServerOptions): FastifyServerFactory {
  const limits = { ...defaultConnectionLimits(), ...overrides };
  return (handle, { http }) => {
    const answer: RequestListener = (request, response) => {
      const error = errorOfHost(request);
      if (error !== null) return refuseRequest(response, 'Host', error);
      if (hasUnknownCoding(request)) return refuseRequest(response, 'Transfer-Encoding', onlyChunked, 501);
      if (declaresBody(request) && isMistrusted(request)) response.shouldKeepAlive = false;
      // While the server closes, Fastify handles all requests, because it closes the connections.
      if (!server.listening || !quick?.(request, response)) void handle(request, response);
    };
    const options = {
      headersTimeout: limits.headersSeconds * 1000,
      requestTimeout: limits.requestSeconds * 1000,
      keepAliveTimeout: limits.idleSeconds * 1000,
      connectionsCheckingInterval: limits.checkSeconds * 1000,
      // Node would reject the request without a body.
      requireHostHeader: false,
    };
    const listener = inTurn(limits.pipelinedRequests, answer);
    const server: Server = certificate
      ? secureServer(certificate, { ...options, handshakeTimeout: limits.headersSeconds * 1000 }, listener)
      : createServer({ ...(http as object | undefined), ...options }, listener);
    server.maxConnections = limits.connections;
    // Node would respond without a body.
    server.on('checkExpectation', (_request, response) => refuseRequest(response, 'Expect', 'must be 100-continue'));
    limitAddresses(server, limits, log, trustedProxies);
    closeStalled(server, limits);
    return server;
  };
}

/** Connections that are open when the certificate changes keep the one that they began with. */
function secureServer(source: CertificateSource, options: ServerOptionsOfTls, listener: RequestListener): Server {
  const contextOf = ({ certificate: cert, key }: Certificate) => ({ cert, key, minVersion: 'TLSv1.2' as const });
  const first = source.current();
  const server = createTlsServer({ ...options, ...(first && contextOf(first)), minVersion: 'TLSv1.2' }, listener);
  source.onChange((certificate) => server.setSecureContext(contextOf(certificate)));
  return server;
}

/** The event of a connection on which requests arrive: with TLS, after the handshake. */
export function connectionEvent(server: Server): 'connection' | 'secureConnection' {
  return server instanceof TlsServer ? 'secureConnection' : 'connection';
}

/**
 * Whether a proxy may disagree with this server about the end of the body. If a proxy announces a body for GET but does not
 * send it, the start of its next request would be read as the body. HTTP/1.0 has no chunked encoding. Such a connection
 * is closed after the response.
 */
function isMistrusted({ method, httpVersionMinor }: IncomingMessage): boolean {
  return method === 'GET' || method === 'HEAD' || httpVersionMinor === 0;
}

/** Of two hosts, a proxy may obey the other one. */
function errorOfHost({ rawHeaders, httpVersionMajor, httpVersionMinor }: IncomingMessage): string | null {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.length === 4 && rawHeaders[i]!.toLowerCase() === 'host') hosts += 1;
  }
  if (hosts > 1) return 'must be sent only once';
  return hosts === 0 && httpVersionMajor === 1 && httpVersionMinor === 1 ? 'is required' : null;
}

/** Whether the headers announce a body that is not empty. */
export function declaresBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const length = headers['content-length'];
  return (length !== undefined && length !== '0') || headers['transfer-encoding'] !== undefined;
}

function limitAddresses(
  server: Server,
  { connectionsPerAddress, checkSeconds }: ConnectionLimits,
  log: Logger,
  trustedProxies: readonly string[],
): void {
  const open = new Map<string, number>();
  const refused = new Map<string, number>();
  server.on('connection', (socket: Socket) => {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined || isInNetworks(remoteAddress, trustedProxies)) return;
    const address = sourceOf(remoteAddress);
    const count = open.get(address) ?? 0;
    if (count >= connectionsPerAddress) {
      if (refused.size < connectionsPerAddress) refused.set(address, (refused.get(address) ?? 0) + 1);
      return server instanceof TlsServer ? void socket.destroy() : refuseConnection(socket);
    }
    open.set(address, count + 1);
    socket.once('close', () => {
      const left = open.get(address)! - 1;
      if (left === 0) open.delete(address);
      else open.set(address, left);
    });
  });
  // One line for each address and interval, so that a flood does not fill the log.
  every(server, checkSeconds, () => {
    for (const [address, count] of refused) log.warn({ address, count, connectionsPerAddress }, 'connections refused');
    refused.clear();
  });
}

/** Resets connections whose client has read nothing of a response for `stalledSeconds`. */
function closeStalled(server: Server, { stalledSeconds, checkSeconds }: ConnectionLimits): void {
  const sockets = new Map<Socket, { taken: number; since: number }>();
  server.on(connectionEvent(server), (socket: Socket) => {
    sockets.set(socket, { taken: 0, since: 0 });
    socket.once('close', () => sockets.delete(socket));
  });
  every(server, checkSeconds, () => {
    const now = performance.now();
    for (const [socket, progress] of sockets) {
      const taken = socket.bytesWritten - socket.writableLength;
      if (socket.writableLength === 0 || taken !== progress.taken) Object.assign(progress, { taken, since: now });
      else if (now - progress.since > stalledSeconds * 1000) socket.resetAndDestroy();
    }
  });
}

function every(server: Server, seconds: number, work: () => void): void {
  const timer = setInterval(work, seconds * 1000).unref();
  server.once('close', () => clearInterval(timer));
}
