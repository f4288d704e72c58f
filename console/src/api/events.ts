import { type Query, useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { ApiError } from './errors.ts';
import type { components } from './openapi.d.ts';
import { queryClient } from './query-client.ts';
import { onReachableAgain } from './reachability.ts';
import { sessionQuery } from './session.ts';
import { createStore, useStore } from './store.ts';

/** A change of a resource, from `GET /cloudyard/v1/events`. */
type ResourceEvent = components['schemas']['ResourceEvent'];

type Liveness = 'connecting' | 'live' | 'polling';

const POLL_MS = 5000;
/** The server sends a heartbeat every 15 s. A stream that is silent for longer is opened again. */
const SILENCE_MS = 40_000;
/** A proxy that collects responses does not even pass on the headers. */
const OPEN_MS = 10_000;
/** How long a tab in the background keeps its stream. */
const HIDDEN_MS = 30_000;
/** While polling, how often events are tried again. */
const RETRY_MS = 60_000;
/** Changes that arrive together are one refresh. */
const COLLECT_MS = 150;

const NETWORK_EVENTS = ['offline', 'online'] as const;

/** Any change is in these. */
const ALWAYS = ['quotas', 'audit', 'user_actions'] as const;

/** Kinds whose queries also show figures of other kinds. */
const DEPENDENTS: Readonly<Record<string, readonly string[]>> = {
  networks: ['subnets'],
  subnets: ['networks'],
  snapshots: ['volumes', 'lifecycle_policies'],
  volumes: ['snapshots', 'lifecycle_policies'],
  lifecycle_policies: ['volumes'],
  lb_listeners: ['load_balancers'],
  lb_pools: ['load_balancers'],
  l7_policies: ['load_balancers'],
  l7_rules: ['load_balancers'],
  development_clocks: ['clock'],
  development_faults: ['faults'],
  secrets: ['load_balancers'],
};

const liveness = createStore<Liveness>('connecting');

/** Whether changes arrive as events or are polled. */
export function useLiveness(): Liveness {
  return useStore(liveness);
}

/** Keeps the queries of the page current while it is shown: by events of the project, or by polling where they cannot flow. */
export function useLiveQueries(projectId: string): void {
  const isSignedIn = Boolean(useQuery(sessionQuery).data);
  useEffect(() => (isSignedIn ? openStream(projectId) : undefined), [projectId, isSignedIn]);
}

interface StreamHandlers {
  readonly opened: () => void;
  /** `change` is null for a heartbeat. */
  readonly received: (id: string, change: (() => void) | null) => void;
  readonly failed: (isRefused: boolean) => void;
}

function openSource(projectId: string, lastId: string, handlers: StreamHandlers): EventSource {
  const query = new URLSearchParams({ project_id: projectId, ...(lastId === '' ? {} : { last_event_id: lastId }) });
  const source = new EventSource(`/cloudyard/v1/events?${query.toString()}`);
  const on = (name: string, changeOf: (event: MessageEvent<string>) => (() => void) | null) =>
    source.addEventListener(name, (event) => {
      const message = event as MessageEvent<string>;
      handlers.received(message.lastEventId, changeOf(message));
    });
  source.addEventListener('open', handlers.opened);
  on('message', (event) => () => collect(JSON.parse(event.data) as ResourceEvent));
  on('reset', () => refreshAll);
  on('heartbeat', () => null);
  // The browser reopens a stream that broke, but not one that the server refused.
  source.addEventListener('error', () => handlers.failed(source.readyState === EventSource.CLOSED));
  return source;
}

/** `cancelRefetch`: reads that have begun begin again, because they may miss a change. */
function refreshAll({ cancelRefetch } = { cancelRefetch: true }): void {
  void queryClient.invalidateQueries({ predicate: ({ state }) => !isRefused(state.error) }, { cancelRefetch });
}

/** A token without access does not get it by a change: another read would only replace the reason with grey bars for a moment. */
function isRefused(error: Error | null): boolean {
  return error instanceof ApiError && error.status === 403;
}

/**
 * Follows the events of a project. Returns the function that stops it.
 *
 * A browser opens at most six connections to a server over HTTP/1.1, so tabs in the background close their stream. A stream that
 * is opened again resumes after the last event that was received.
 */
function openStream(projectId: string): () => void {
  let source: EventSource | null = null;
  let lastId = '';
  let failures = 0;
  let timers: number[] = [];

  const after = (delay: number, act: () => void) => timers.push(window.setTimeout(act, delay));
  const clearTimers = () => {
    for (const timer of timers) clearTimeout(timer);
    timers = [];
  };
  const stop = () => {
    clearTimers();
    source?.close();
    source = null;
  };
  const expectMessage = () => {
    clearTimers();
    after(SILENCE_MS, connect);
  };
  function connect(): void {
    stop();
    const isResumed = lastId !== '';
    after(OPEN_MS, poll);
    source = openSource(projectId, lastId, {
      opened() {
        // What changed between the reads of the page and this moment is in no event.
        if (!isResumed || liveness.get() === 'polling') refreshAll();
        failures = 0;
        liveness.set('live');
        expectMessage();
      },
      received(id, change) {
        lastId = id || lastId;
        expectMessage();
        change?.();
      },
      failed(isRefused) {
        failures += 1;
        // The server ends the streams of a session that ended: by its expiry, a sign-out in another tab or a revoked token.
        void queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey });
        if (failures >= 2 || isRefused) poll();
      },
    });
  }
  function poll(): void {
    stop();
    liveness.set('polling');
    const repeat = () => {
      // A read may take longer than the interval.
      if (!document.hidden) refreshAll({ cancelRefetch: false });
      after(POLL_MS, repeat);
    };
    after(POLL_MS, repeat);
    after(RETRY_MS, connect);
  }
  const onVisibility = () => {
    if (!document.hidden && source === null) connect();
    else if (document.hidden) window.setTimeout(() => document.hidden && stop(), HIDDEN_MS);
  };
  // A change of network ends connections without notice. A server on this host may still be reachable.
  const onNetwork = () => {
    if (!document.hidden) connect();
  };
  document.addEventListener('visibilitychange', onVisibility);
  for (const name of NETWORK_EVENTS) window.addEventListener(name, onNetwork);
  const unsubscribe = onReachableAgain(() => {
    if (liveness.get() === 'polling' && !document.hidden) connect();
  });
  connect();
  return () => {
    document.removeEventListener('visibilitychange', onVisibility);
    for (const name of NETWORK_EVENTS) window.removeEventListener(name, onNetwork);
    unsubscribe();
    stop();
  };
}

const collected = new Set<string>();

/** Marks the queries of a change stale, a moment later, so that a burst of events is one refresh. */
function collect(event: ResourceEvent): void {
  if (collected.size === 0) setTimeout(flush, COLLECT_MS);
  const kind = queryKindOf(event.kind);
  const tasks = event.task_id ? ['tasks'] : [];
  for (const each of [kind, ...ALWAYS, ...tasks, ...(DEPENDENTS[kind] ?? [])]) {
    collected.add(each);
  }
}

/** A kind that is being read waits for the end of that: reads that begin again with each change would not end. */
function flush(): void {
  const kinds = [...collected];
  collected.clear();
  for (const kind of kinds)
    if (queryClient.isFetching({ type: 'active', predicate: isOf(kind) }) > 0) collected.add(kind);
  if (collected.size > 0) setTimeout(flush, COLLECT_MS);
  const idle = kinds.filter((kind) => !collected.has(kind));
  void queryClient.invalidateQueries({ predicate: (query) => idle.some((kind) => isOf(kind)(query)) });
}

const isOf =
  (kind: string) =>
  ({ queryKey, state }: Query): boolean =>
    String(queryKey[0]) === kind && !isRefused(state.error);

/** `file_share`, `file-shares` and `file_shares` are the queries `file_shares`. */
function queryKindOf(kind: string): string {
  const name = kind.toLowerCase().replaceAll('-', '_');
  if (name.endsWith('s')) return name;
  return /[^aeiou]y$/.test(name) ? `${name.slice(0, -1)}ies` : `${name}s`;
}
