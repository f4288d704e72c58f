/**
 * The HTTP server of the API, with the limits that apply before a request is authenticated.
 *
 * Invariant: a client that sends or reads slowly holds a connection for a bounded time, and the clients of one address
 * hold a part of the connections only. A request that waits for its answer (`?wait=`) is not limited here.
 */
import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyServerFactory } from 'fastify';
import ipaddr from 'ipaddr.js';
import type { Logger } from 'pino';
import { descriptorLimit } from '../platform/descriptors.ts';
import { isInNetworks } from '../platform/network-address.ts';
import { currentResponse, refuseConnection } from './error-handling.ts';

export interface ConnectionLimits {
  /** From the first byte of a request, or from the start of the connection, until all headers are there. */
  headersSeconds: number;
  /** The same until the body is complete. */
  requestSeconds: number;
  /** Between two requests. */
  idleSeconds: number;
  /** How long a client may take for a part of a response (1 MiB at most in streamed lists). */
  stalledSeconds: number;
  /** How often the times above are checked. */
  checkSeconds: number;
  /** Open connections: all, and those of one address. Addresses of IPv6 count by their /64 network. */
  connections: number;
  connectionsPerAddress: number;
  /** Requests that a client may send ahead before the first of them is answered. */
  pipelinedRequests: number;
}

const mostConnections = 8192;
/** For the database, logs, drivers and files. */
const reservedDescriptors = 256;

export function defaultConnectionLimits(descriptors = descriptorLimit()): ConnectionLimits {
  const connections = Math.min(Math.max(descriptors - reservedDescriptors, 64), mostConnections);
  return {
    headersSeconds: 15,
    requestSeconds: 120,
    // Longer than nginx keeps a connection to us (60 s): the proxy closes first, so no request meets a closed connection.
    idleSeconds: 72,
    stalledSeconds: 60,
    checkSeconds: 5,
    connections,
    connectionsPerAddress: Math.floor(connections / 4),
    pipelinedRequests: 16,
  };
}

/** Answers by itself and returns true, or leaves the request to the framework. */
export type QuickAnswer = (request: IncomingMessage, response: ServerResponse) => boolean;

export interface ServerOptions {
  /** Where they differ from the default ones. */
  limits?: Partial<ConnectionLimits> | undefined;
  log: Logger;
  quick?: QuickAnswer | undefined;
  /** CIDRs of proxies, whose connections carry the requests of many clients. */
  trustedProxies?: readonly string[] | undefined;
}

export function limitedServer({ log, quick, trustedProxies = [], ...options }: ServerOptions): FastifyServerFactory {
  const limits = { ...defaultConnectionLimits(), ...options.limits };
  return (handle, { http }) => {
    const answer: RequestListener = (request, response) => {
      if (declaresBody(request) && isMistrusted(request)) response.shouldKeepAlive = false;
      // A server that closes leaves all to Fastify, which ends the connections of its clients.
      if (!server.listening || !quick?.(request, response)) void handle(request, response);
    };
    const server = createServer(
      {
        ...(http as object | undefined),
        headersTimeout: limits.headersSeconds * 1000,
        requestTimeout: limits.requestSeconds * 1000,
        keepAliveTimeout: limits.idleSeconds * 1000,
        connectionsCheckingInterval: limits.checkSeconds * 1000,
      },
      inTurn(limits.pipelinedRequests, answer),
    );
    server.maxConnections = limits.connections;
    limitAddresses(server, limits, log, trustedProxies);
    closeStalled(server, limits);
    return server;
  };
}

/**
 * Whether others may see the end of a body elsewhere. A proxy that announces one to GET and does not send it would have
 * the start of its next request taken for the body; HTTP/1.0 knows no chunks. Such a connection is closed.
 */
function isMistrusted({ method, httpVersionMinor }: IncomingMessage): boolean {
  return method === 'GET' || method === 'HEAD' || httpVersionMinor === 0;
}

export function declaresBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const length = headers['content-length'];
  return (length !== undefined && length !== '0') || headers['transfer-encoding'] !== undefined;
}

interface Queue {
  last: ServerResponse;
  waiting: number;
}

/** The requests of a connection are handled one after the other. A client that sends too many ahead is cut off. */
function inTurn(most: number, handle: RequestListener): RequestListener {
  const queues = new WeakMap<Socket, Queue>();
  return (request, response) => {
    // Node gives a response its socket when those before it are finished.
    if (response.socket) return handle(request, response);
    const { socket } = request;
    const queue = queues.get(socket) ?? { last: response, waiting: 0 };
    queues.set(socket, queue);
    const before = queue.waiting === 0 ? currentResponse(socket)! : queue.last;
    queue.last = response;
    queue.waiting += 1;
    if (queue.waiting >= most) return socket.destroy();
    before.once('close', () => {
      queue.waiting -= 1;
      if (!socket.destroyed) handle(request, response);
    });
  };
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
    const address = addressGroup(remoteAddress);
    const count = open.get(address) ?? 0;
    if (count >= connectionsPerAddress) {
      if (refused.size < connectionsPerAddress) refused.set(address, (refused.get(address) ?? 0) + 1);
      return refuseConnection(socket);
    }
    open.set(address, count + 1);
    socket.once('close', () => {
      const left = open.get(address)! - 1;
      if (left === 0) open.delete(address);
      else open.set(address, left);
    });
  });
  // One line for all that were refused: a flood must not fill the log.
  every(server, checkSeconds, () => {
    for (const [address, count] of refused) log.warn({ address, count, connectionsPerAddress }, 'connections refused');
    refused.clear();
  });
}

/** Resets connections whose client has not taken any part of a response for too long. */
function closeStalled(server: Server, { stalledSeconds, checkSeconds }: ConnectionLimits): void {
  const sockets = new Map<Socket, { taken: number; since: number }>();
  server.on('connection', (socket: Socket) => {
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

/** What counts as one client: an IPv4 address, or the /64 network of an IPv6 address. */
export function addressGroup(address: string): string {
  if (!address.includes(':') || !ipaddr.IPv6.isValid(address)) return address;
  const parsed = ipaddr.IPv6.parse(address);
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString();
  return `${parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}
