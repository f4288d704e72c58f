/**
 * Pipelined requests in turn. Node emits all requests that a connection has received, although it sends the responses in order,
 * so one connection could start any number of requests at once. Nor does a response that waits for another one emit an event
 * when its connection closes.
 */
import type { RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

interface Queue {
  last: ServerResponse;
  waiting: number;
}

/** Handles the requests of a connection one after another, and closes the connection of a client that pipelines too many. */
export function inTurn(maxPipelined: number, handle: RequestListener): RequestListener {
  const queues = new WeakMap<Socket, Queue>();
  return (request, response) => {
    // Node assigns the socket to a response once the previous responses are finished.
    if (response.socket) return handle(request, response);
    const { socket } = request;
    const queue = queues.get(socket) ?? { last: response, waiting: 0 };
    queues.set(socket, queue);
    const previous = queue.waiting === 0 ? currentResponse(socket)! : queue.last;
    queue.last = response;
    queue.waiting += 1;
    if (queue.waiting >= maxPipelined) return socket.destroy();
    previous.once('close', () => {
      queue.waiting -= 1;
      if (!socket.destroyed) handle(request, response);
    });
  };
}

/** The response that is being written to the socket. Node has no public name for it. */
export function currentResponse(socket: Socket): ServerResponse | null {
  const { _httpMessage: response } = socket as Socket & { _httpMessage?: ServerResponse | null };
  return response ?? null;
}
