/** Responses that are streams of server-sent events, and so last until one side ends them. */
import type { FastifyReply } from 'fastify';

const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  // nginx would collect events.
  'x-accel-buffering': 'no',
};

/** The response to HEAD. */
export function describeEventStream(reply: FastifyReply): FastifyReply {
  return reply.headers(headers).send('');
}

/** Sends the headers. The request releases its slot: a stream uses none. */
export function openEventStream(reply: FastifyReply) {
  const { raw, request } = reply;
  reply.hijack();
  request.by.slot?.end();
  raw.writeHead(200, { ...(reply.getHeaders() as Record<string, string>), ...headers });
  return {
    write: (text: string): void => void (raw.destroyed || raw.writableEnded || raw.write(text)),
    /** Whether the connection has buffered as much as it should. */
    isFull: () => raw.writableNeedDrain,
    end: () => void raw.end(),
    /** `drained` is called when it has room again, `closed` once when the connection or the stream has ended. */
    on(drained: () => void, closed: () => void): void {
      raw.on('drain', drained);
      if (raw.destroyed) closed();
      else raw.once('close', closed);
    },
  };
}
