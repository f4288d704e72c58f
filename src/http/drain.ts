/**
 * Ends the connections of a server that stops, without a reset: requests that were read are answered with
 * `Connection: close`, and idle connections are ended after a time in which a request may still arrive.
 *
 * Why not `server.close()`: it destroys idle connections at once. A client that has just sent a request then sees a reset,
 * and cannot know whether the request was handled.
 */
import type { Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { currentResponse } from '../platform/requests-in-turn.ts';
import { connectionEvent } from './connection-limits.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** Call `drain` before `close`, which resets connections. */
    drain: ReturnType<typeof createDrain>;
  }
}

/** How long an idle connection stays open. A client that is busy sends its next request within this time. */
const idleMs = 300;
/** A client that does not close its side of a connection within this time is reset. */
const halfClosedMs = 1000;
const checkMs = 20;

/** Call it before the server listens, because it follows all connections from their start. */
export function createDrain(server: Server) {
  /** When each connection was last seen with a request. */
  const connections = new Map<Socket, number>();
  let draining = false;
  server.on(connectionEvent(server), (socket: Socket) => {
    connections.set(socket, performance.now());
    socket.once('close', () => connections.delete(socket));
  });
  const handshakes = connectionEvent(server) === 'connection' ? new Map<string, Socket>() : handshakesOf(server);
  server.prependListener('request', (_request, response: ServerResponse) => {
    if (draining) response.shouldKeepAlive = false;
  });

  /** Closes the listening socket. Open connections are served as before. */
  const stopListening = async () => {
    // The connections in the queue of the kernel are accepted in this turn; closing the socket would reset them.
    await new Promise((resolve) => setImmediate(resolve));
    if (server.listening) NetServer.prototype.close.call(server);
  };

  return {
    stopListening,

    /** Stops listening, and resolves when all connections have ended. */
    async drain(): Promise<void> {
      await stopListening();
      draining = true;
      for (const socket of handshakes.values()) socket.destroy();
      for (const socket of connections.keys()) {
        const response = currentResponse(socket);
        if (response && !response.headersSent) response.shouldKeepAlive = false;
        connections.set(socket, performance.now());
      }
      for (; connections.size > 0; await sleep(checkMs)) endIdle(connections);
    },
  };
}

/** Connections whose TLS handshake is not complete, by the address and the port of the client. */
function handshakesOf(server: Server): Map<string, Socket> {
  const sockets = new Map<string, Socket>();
  const keyOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;
  server.on('connection', (socket: Socket) => {
    const key = keyOf(socket);
    sockets.set(key, socket);
    socket.once('close', () => {
      if (sockets.get(key) === socket) sockets.delete(key);
    });
  });
  server.on('secureConnection', (socket: Socket) => sockets.delete(keyOf(socket)));
  return sockets;
}

function endIdle(connections: Map<Socket, number>): void {
  const now = performance.now();
  for (const [socket, seen] of connections) {
    if (currentResponse(socket)) connections.set(socket, now);
    else if (now - seen > idleMs + halfClosedMs) socket.destroy();
    else if (now - seen > idleMs && !socket.writableEnded) socket.end();
  }
}
