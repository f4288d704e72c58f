import { useEffect, useSyncExternalStore } from 'react';
import { queryClient } from './query-client.ts';

/** A change of a resource, from `GET /cloudyard/v1/events`. */
export interface ResourceEvent {
  readonly id: string;
  readonly kind: string;
  readonly resource_id: string;
  readonly change: string;
  readonly client_id: number | null;
  readonly project_id: number | null;
  readonly region_id: number | null;
  readonly task_id: string | null;
  readonly at: string;
}

export type Liveness = 'connecting' | 'live' | 'polling';

const POLL_MS = 5000;
/** The server sends a heartbeat every 15 s. */
const SILENCE_MS = 40_000;
/** While polling, how often events are tried again. */
const RETRY_MS = 60_000;
/** Changes that arrive together are one refresh. */
const COLLECT_MS = 150;

/** Kinds whose queries also show figures of other kinds. */
const DEPENDENTS: Readonly<Record<string, readonly string[]>> = {
  networks: ['subnets'],
  subnets: ['networks'],
  snapshots: ['volumes', 'lifecycle_policies'],
  volumes: ['snapshots', 'lifecycle_policies'],
  lifecycle_policies: ['volumes'],
  listeners: ['load_balancers'],
  pools: ['load_balancers'],
  l7_policies: ['load_balancers'],
  secrets: ['load_balancers'],
};

let liveness: Liveness = 'connecting';
const listeners = new Set<() => void>();

/** Whether changes arrive as events or are polled. */
export function useLiveness(): Liveness {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => liveness,
  );
}

function setLiveness(next: Liveness): void {
  if (next === liveness) return;
  liveness = next;
  for (const listener of listeners) listener();
}

/** Keeps the queries of the page current while it is shown: by events of the project, or by polling where they cannot flow. */
export function useLiveQueries(projectId: string): void {
  useEffect(() => {
    const stream = openStream(projectId);
    return () => stream.close();
  }, [projectId]);
}

function openStream(projectId: string): { close: () => void } {
  let source: EventSource | null = null;
  let failures = 0;
  let isClosed = false;
  const timers = { poll: 0, retry: 0, silence: 0 };

  function connect(): void {
    if (isClosed) return;
    source = new EventSource(`/cloudyard/v1/events?project_id=${encodeURIComponent(projectId)}`);
    source.addEventListener('open', heard);
    source.addEventListener('heartbeat', heard);
    source.addEventListener('message', (event) => received(event.data));
    source.addEventListener('change', (event) => received((event as MessageEvent<string>).data));
    source.addEventListener('reset', () => {
      heard();
      void queryClient.invalidateQueries();
    });
    source.addEventListener('error', () => {
      failures += 1;
      // A stream that closed is not reopened by the browser: the server refused it.
      if (failures >= 2 || source?.readyState === EventSource.CLOSED) poll();
    });
    watch();
  }
  function received(data: string): void {
    heard();
    collect(JSON.parse(data) as ResourceEvent);
  }
  function heard(): void {
    // Changes between the last poll, or the first reads of the page, and this moment are in no event.
    if (liveness === 'polling') void queryClient.invalidateQueries();
    failures = 0;
    setLiveness('live');
    watch();
  }
  function watch(): void {
    clearTimeout(timers.silence);
    timers.silence = window.setTimeout(poll, SILENCE_MS);
  }
  function poll(): void {
    source?.close();
    clearTimers();
    setLiveness('polling');
    timers.poll = window.setInterval(() => {
      if (!document.hidden) void queryClient.invalidateQueries({ type: 'active' });
    }, POLL_MS);
    timers.retry = window.setTimeout(() => {
      clearInterval(timers.poll);
      failures = 0;
      connect();
    }, RETRY_MS);
  }
  function clearTimers(): void {
    clearInterval(timers.poll);
    clearTimeout(timers.retry);
    clearTimeout(timers.silence);
  }
  connect();
  return {
    close() {
      isClosed = true;
      clearTimers();
      source?.close();
    },
  };
}

const collected = new Set<string>();

/** Marks the queries of a change stale, a moment later, so that a burst of events is one refresh. */
function collect(event: ResourceEvent): void {
  if (collected.size === 0) setTimeout(flush, COLLECT_MS);
  const kind = queryKindOf(event.kind);
  for (const each of [kind, 'quotas', ...(event.task_id ? ['tasks'] : []), ...(DEPENDENTS[kind] ?? [])]) {
    collected.add(each);
  }
}

function flush(): void {
  const kinds = [...collected];
  collected.clear();
  void queryClient.invalidateQueries({ predicate: ({ queryKey }) => kinds.includes(String(queryKey[0])) });
}

/** `file_share`, `file-shares` and `file_shares` are the queries `file_shares`. */
export function queryKindOf(kind: string): string {
  const name = kind.toLowerCase().replaceAll('-', '_');
  if (name.endsWith('s')) return name;
  return name.endsWith('y') ? `${name.slice(0, -1)}ies` : `${name}s`;
}
