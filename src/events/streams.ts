/**
 * The open event streams of a process. Each has a position in the ring of the feed and writes what its connection takes, so
 * a slow reader costs no memory: when the ring has dropped events that it has not read, it gets `event: reset`.
 *
 * Invariant: a stream gets every event that its token may read, in order and once, or a reset. It ends within a second when
 * its token is revoked, expires or changes.
 */
import type { Actor } from '../authz/actor.ts';
import type { Access } from '../authz/access.ts';
import { joined } from '../platform/turns.ts';
import type { Feed } from './feed.ts';
import type { ResourceEvent } from './source.ts';
import { mayRead } from './visibility.ts';

/** The connection of a stream. */
export interface Sink {
  write(text: string): void;
  /** Whether its buffer is full. The caller calls `drained` of the stream when the buffer is empty again. */
  isFull(): boolean;
  end(): void;
}

export interface StreamRequest {
  actor: Actor;
  /** The projects to include; null: all. Projects themselves, and resources that belong to none, are included. */
  projectIds: ReadonlySet<number> | null;
  kinds: ReadonlySet<string> | null;
  lastEventId: string | null;
  /** Identifies what `check` checks. */
  credential: string;
  /** The actor as of now; null if its token or session is no longer valid. */
  check(): Actor | null | Promise<Actor | null>;
}

export interface OpenStream {
  /** Continues after a sink was full. */
  drained(): void;
  closed(): void;
}

interface Stream extends StreamRequest {
  sink: Sink;
  position: number;
  /** The ID that the client would resume after. */
  sentId: string;
}

const heartbeatMs = 15_000;
const checkMs = 300;
/** Events that arrive within this time are sent together. */
const collectMs = 20;
/** Characters of one write. */
const chunkLength = 16 * 1024;
/** How soon a client opens a stream again. */
const retryMs = 1000;

/** `kinds`: the access that a caller needs for events of each kind. */
export function createStreams({ feed, kinds }: { feed: Feed; kinds: ReadonlyMap<string, Access> }) {
  const { ring } = feed;
  const open = new Set<Stream>();
  const counts = new Map<number, number>();
  let timers: NodeJS.Timeout[] = [];
  let sending: NodeJS.Timeout | undefined;
  let isStopped = false;

  const send = (stream: Stream) => sendEvents(ring, stream, (event) => isVisible(kinds, stream, event));

  const sendAll = () => {
    sending = undefined;
    for (const stream of open) send(stream);
  };

  const sendHeartbeats = () => {
    for (const stream of open) sendHeartbeat(ring, stream);
  };

  const close = (stream: Stream) => {
    if (!open.delete(stream)) return;
    const { clientId } = stream.actor;
    const left = counts.get(clientId)! - 1;
    if (left === 0) counts.delete(clientId);
    else counts.set(clientId, left);
    if (open.size > 0) return;
    for (const timer of timers) clearInterval(timer);
    timers = [];
  };

  const end = (stream: Stream) => {
    close(stream);
    stream.sink.end();
  };

  /** Once for each credential: many streams share one. */
  const check = joined(async () => {
    const actors = new Map<string, Actor | null>();
    for (const stream of open) {
      const { credential } = stream;
      try {
        if (!actors.has(credential)) actors.set(credential, await stream.check());
        if (!isSame(stream.actor, actors.get(credential)!)) end(stream);
      } catch {
        // Without the database nothing can be revoked, and no event arrives.
        break;
      }
    }
  });

  feed.watch(() => {
    if (open.size > 0) sending ??= setTimeout(sendAll, collectMs);
  });

  return {
    /** Open streams. */
    count: () => open.size,
    /** Those of a client. */
    countOf: (clientId: number) => counts.get(clientId) ?? 0,
    isStopped: () => isStopped,

    /** Starts with the events after the given ID, or with the next event. Call `feed.open` before. */
    add(request: StreamRequest, sink: Sink): OpenStream {
      const { lastEventId } = request;
      const resumed = lastEventId === null ? ring.head() : ring.positionAfter(lastEventId);
      const stream: Stream = { ...request, sink, position: resumed ?? -1, sentId: lastEventId ?? ring.lastId() };
      const { clientId } = request.actor;
      open.add(stream);
      counts.set(clientId, (counts.get(clientId) ?? 0) + 1);
      if (timers.length === 0) {
        timers = [setInterval(sendHeartbeats, heartbeatMs).unref(), setInterval(() => void check(), checkMs).unref()];
      }
      sink.write(`retry: ${retryMs}\n${resumed === null ? '' : `id: ${stream.sentId}\n`}\n`);
      send(stream);
      return { drained: () => send(stream), closed: () => close(stream) };
    },

    /** Ends all streams; requests for others are refused. */
    stop(): void {
      isStopped = true;
      clearTimeout(sending);
      for (const stream of open) end(stream);
    },
  };
}

function isVisible(
  kinds: ReadonlyMap<string, Access>,
  { actor, projectIds, kinds: wanted }: Stream,
  event: ResourceEvent,
): boolean {
  if (wanted && !wanted.has(event.kind)) return false;
  const { project_id: project, kind } = event;
  // Changes of projects themselves are for all: a client that shows one project shows the names of the others.
  if (projectIds && project !== null && kind !== 'project' && !projectIds.has(project)) return false;
  const access = kinds.get(event.kind);
  return access !== undefined && mayRead(actor, access, event);
}

/** Writes the next events, until the stream has all of them or its sink is full. */
function sendEvents(ring: Feed['ring'], stream: Stream, includes: (event: ResourceEvent) => boolean): void {
  while (!stream.sink.isFull() && stream.position !== ring.head()) {
    if (!ring.isValid(stream.position)) {
      stream.position = ring.head();
      stream.sentId = ring.lastId();
      stream.sink.write(`event: reset\nid: ${stream.sentId}\ndata: {}\n\n`);
      continue;
    }
    let text = '';
    while (stream.position < ring.head() && text.length < chunkLength) {
      const entry = ring.at(stream.position)!;
      stream.position += 1;
      if (!includes(entry.event)) continue;
      text += entry.text;
      stream.sentId = entry.event.id;
    }
    if (text !== '') stream.sink.write(text);
  }
}

/** Also moves the ID to resume after, so that events of others do not age it. */
function sendHeartbeat(ring: Feed['ring'], stream: Stream): void {
  if (stream.sink.isFull()) return;
  const id = stream.position === ring.head() && stream.sentId !== ring.lastId() ? ring.lastId() : null;
  if (id !== null) stream.sentId = id;
  // An event rather than a comment, which browsers hide from the page: it shows that the connection works.
  stream.sink.write(`event: heartbeat\n${id === null ? '' : `id: ${id}\n`}data:\n\n`);
}

function isSame(before: Actor, now: Actor | null): boolean {
  return JSON.stringify(before) === JSON.stringify(now);
}
