/** The operation that streams events. */
import { tokenReader } from '../../authz/access.ts';
import { describeEventStream, openEventStream } from '../../http/event-stream.ts';
import { operationsOf } from '../../http/operations.ts';
import { ResourceEvent, StreamEvents } from './schema.ts';
import type { Events } from './service.ts';

const operation = operationsOf({
  name: 'Events',
  description: 'Changes of all resources, as server-sent events.',
});

export const eventOperations = (events: Events, kinds: string[]) => [
  operation('GET', '/cloudyard/v1/events', {
    id: 'streamEvents',
    summary: 'Stream changes of resources',
    description:
      'A stream of server-sent events. Each names a resource that was created, updated or deleted, by a request or by a ' +
      'worker; read it to see its state. A client that reconnects with `Last-Event-ID` gets the events since. `event: reset` ' +
      'means that events were missed: read everything again. `event: heartbeat` comes every 15 s. The stream ends when the token is revoked or expires.',
    access: tokenReader,
    query: StreamEvents(kinds),
    response: ResourceEvent,
    produces: ['text/event-stream'],
    route: { config: { isStream: true } },
    handle: async ({ by, query }, reply) => {
      const header = reply.request.headers['last-event-id'];
      const maxStreams = reply.server.maxEventStreams;
      const opening = await events.prepare(by, query, { lastEventId: header as string | undefined, maxStreams });
      opening.requireRoom();
      if (reply.request.method === 'HEAD') return describeEventStream(reply);
      const stream = openEventStream(reply);
      const { drained, closed } = opening.start(stream);
      stream.on(drained, closed);
      return reply;
    },
  }),
];
