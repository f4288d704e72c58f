/** The stream of changes of resources: who may open one, and how many. */
import { ClientError, notFound, tooManyRequests, unavailable } from '../../errors/catalogue.ts';
import type { RequestContext } from '../../authz/actor.ts';
import { createFeed } from '../../events/feed.ts';
import type { EventSource } from '../../events/source.ts';
import { createStreams, type OpenStream, type Sink, type StreamRequest } from '../../events/streams.ts';
import { accessOfKinds } from '../../events/visibility.ts';
import type { Listener } from '../../platform/listener.ts';
import type { Logger } from '../../platform/log.ts';
import type { StreamEvents } from './schema.ts';

interface EventsDeps {
  listener: Listener;
  log: Logger;
  sources: readonly EventSource[];
  /** The client of a project; null if the project does not exist. */
  clientOfProject(projectId: number): number | null | Promise<number | null>;
  metrics: { countRefusal(limit: string): void; watchEventStreams(count: () => number): void };
}

interface Opening {
  /** @throws ClientError 429 if the client has no room for one more stream */
  requireRoom(): void;
  start(sink: Sink): OpenStream;
}

export type Events = ReturnType<typeof createEvents>;

export function createEvents({ listener, log, sources, clientOfProject, metrics }: EventsDeps) {
  const feed = createFeed({ listener, log });
  const streams = createStreams({ feed, kinds: accessOfKinds(sources) });

  const requireProjects = async ({ actor }: RequestContext, projectIds: Iterable<number>) => {
    for (const id of projectIds) {
      if ((await clientOfProject(id)) !== actor.clientId) throw notFound('project', id);
      if (actor.projectIds && !actor.projectIds.includes(id)) {
        throw new ClientError('Forbidden', `the token has no access to project ${id}`);
      }
    }
  };

  return {
    /** Starts to receive changes. */
    start(): void {
      feed.start(() => streams.count() > 0);
      metrics.watchEventStreams(streams.count);
    },

    /** Ends all streams. */
    endStreams: () => streams.stop(),

    stop: () => feed.stop(),

    /**
     * Checks a request, and returns functions that start its stream. Call both in one turn of the event loop: requests that
     * waited for the feed together continue together, and each must count the streams of those before it. `maxStreams`: open
     * streams of a client of weight 1.
     * @throws ClientError 403, 404, 503
     */
    async prepare(
      by: RequestContext,
      query: StreamEvents,
      { lastEventId, maxStreams }: { lastEventId: string | undefined; maxStreams: number },
    ): Promise<Opening> {
      const { actor } = by;
      const projectIds = query.project_id ? new Set(query.project_id) : null;
      await requireProjects(by, projectIds ?? []);
      const isOpen = await feed.open();
      if (streams.isStopped()) throw unavailable('the server is stopping');
      if (!isOpen) throw unavailable('the database cannot be reached; try again in a second');
      const request: StreamRequest = {
        actor,
        projectIds,
        kinds: query.kinds ? new Set(query.kinds) : null,
        lastEventId: lastEventId || query.last_event_id || null,
        credential: by.credential!.text,
        check: by.credential!.check,
      };
      return {
        requireRoom() {
          const limit = maxStreams * (actor.weight ?? 1);
          if (streams.countOf(actor.clientId) < limit) return;
          metrics.countRefusal('event_streams');
          const message = `the client has ${limit} open event streams on this server, its limit; close some, then try again`;
          throw tooManyRequests(message);
        },
        start: (sink) => streams.add(request, sink),
      };
    },
  };
}
