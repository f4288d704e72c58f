/**
 * All API keys in memory, for `authorize`: proxies call it before every request to every container, also while the
 * database is unavailable.
 *
 * Invariant: a change takes effect on this server before its request is answered (`apply`), and on the other servers when
 * they are notified. Changes have versions in the order of their commits. On the connection for notifications
 * (platform/listener.ts) the cache also polls twice a second, and reads the rows with newer versions.
 * Failure modes: a new connection polls first; until then the last known keys stay valid.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Clock } from '../../platform/clock.ts';
import { equalInConstantTime, sha256 } from '../../platform/crypto.ts';
import type { Listener } from '../../platform/listener.ts';
import * as store from './store.ts';
import type { CachedRow } from './store.ts';

const pollMs = 500;
/** Small enough that processing a page delays no request. */
const pageSize = 500;
/** Rows of deleted keys exist for a day; after a longer interruption than this all keys are read again. */
const staleMs = 3_600_000;
/** Up to this many, an array is as fast as a set, and smaller. */
const fewContainers = 8;

export const refusals = {
  missing_key: { status: 401, message: 'send the API key in the header X-API-Key' },
  unknown_key: { status: 401, message: 'the API key is unknown' },
  expired_key: { status: 401, message: 'the API key has expired' },
  disabled_key: { status: 403, message: 'the API key is disabled' },
  pending_key: { status: 403, message: 'the API key is not valid yet' },
  unnamed_container: { status: 403, message: 'the proxy did not name the container' },
  other_place: { status: 403, message: 'the API key belongs to another project or region' },
  no_containers: { status: 403, message: 'the API key grants access to no container: its list is empty' },
  other_container: { status: 403, message: 'the API key does not grant access to this container' },
} as const;
type Refusal = keyof typeof refusals;

/** The container of a request. Without project and region, keys of any project and region are valid. */
export interface ContainerRequest {
  name?: string | undefined;
  namespace?: string | undefined;
  projectId?: number | undefined;
  regionId?: number | undefined;
}

/** The containers that a key grants access to, by `containerKey`; most keys have one. */
type Containers = string | readonly string[] | ReadonlySet<string>;

/** Made of few objects, because a hundred thousand entries are kept and the garbage collector visits each object. */
interface Entry {
  projectId: number;
  regionId: number;
  hash: string;
  containers: Containers;
  startsAt: number;
  endsAt: number;
  isDisabled: boolean;
  isDeleted: boolean;
  version: number;
}

export type KeyCache = ReturnType<typeof createKeyCache>;

export function createKeyCache({ clock, listener }: { clock: Clock; listener: Listener }) {
  const entries = new Map<string, Entry>();
  const over = new AbortController();
  let version = 0;
  let polledAt = Number.NEGATIVE_INFINITY;
  let wake = () => {};
  let unfollow: (() => Promise<void>) | undefined;
  const firstLoad = Promise.withResolvers<void>();
  /** Deleted keys stay among the entries until no change older than their deletion can arrive. */
  const deleted = new Set<string>();

  const put = (row: CachedRow) => {
    if ((entries.get(row.keyId)?.version ?? 0) >= row.version) return;
    entries.set(row.keyId, entryOf(row));
    if (row.deletedAt) deleted.add(row.keyId);
  };

  const readAfter = async (client: pg.ClientBase, from: number, current: number): Promise<number> => {
    for (let last = from; ; ) {
      const rows = await store.findChanged(client, last, pageSize);
      for (const row of rows) put(row);
      last = rows.at(-1)?.version ?? last;
      if (rows.length < pageSize) return Math.max(last, current);
    }
  };

  const catchUp = async (client: pg.ClientBase) => {
    const startedAt = performance.now();
    const current = await store.currentVersion(client);
    // The database was replaced by an older one, or rows of deleted keys may have been removed already.
    const isStale = current < version || startedAt - polledAt > staleMs;
    if (isStale) {
      const before = new Set(entries.keys());
      for (const entry of entries.values()) entry.version = 0;
      version = await readAfter(client, 0, current);
      for (const id of before) if (entries.get(id)?.version === 0) entries.delete(id);
    } else if (current > version) version = await readAfter(client, version, current);
    for (const id of deleted) {
      if ((entries.get(id)?.version ?? 0) > version) continue;
      entries.delete(id);
      deleted.delete(id);
    }
    polledAt = startedAt;
    firstLoad.resolve();
  };

  /** Returns when the connection breaks. */
  const onConnected = async (client: pg.ClientBase, lost: AbortSignal) => {
    const end = () => wake();
    lost.addEventListener('abort', end);
    while (!lost.aborted && !over.signal.aborted) {
      const woken = new Promise<void>((resolve) => (wake = resolve));
      await catchUp(client);
      const timer = setTimeout(wake, pollMs).unref();
      await woken;
      clearTimeout(timer);
    }
  };

  return {
    /** Reads all keys, then follows changes. Resolves when all keys are read, or after 5 s without a database. */
    async start(): Promise<void> {
      unfollow ??= listener.follow(store.channel, { onNotification: () => wake(), onConnected });
      await Promise.race([firstLoad.promise, sleep(5000, undefined, { ref: false })]);
    },

    async stop(): Promise<void> {
      over.abort();
      wake();
      await unfollow?.();
    },

    /** Applies a change that this server has committed. */
    apply: put,

    /** Whether a key of the database is in the cache. True when the cache was not started. */
    knows: (keyId: string) => unfollow === undefined || entries.has(keyId),

    /** False until all keys have been read once. */
    isLoaded: () => polledAt >= 0,

    /** The number of keys, and the time since the last successful poll. */
    state: () => ({ keys: entries.size, ageSeconds: (performance.now() - polledAt) / 1000 }),

    /** Why the key does not grant access to the container; null when it does. */
    refusal(key: string | undefined, request: ContainerRequest): Refusal | null {
      if (!key) return 'missing_key';
      const dot = key.indexOf('.');
      const entry = entries.get(key.slice(0, Math.max(dot, 0)));
      if (!entry || entry.isDeleted) return 'unknown_key';
      if (!equalInConstantTime(Buffer.from(entry.hash, 'latin1'), sha256(key.slice(dot + 1)))) return 'unknown_key';
      const now = clock.now().getTime();
      if (entry.isDisabled) return 'disabled_key';
      if (entry.endsAt <= now) return 'expired_key';
      if (entry.startsAt > now) return 'pending_key';
      return refusalOfContainer(entry, request);
    },
  };
}

function refusalOfContainer(entry: Entry, { name, namespace, projectId, regionId }: ContainerRequest): Refusal | null {
  if (!name || !namespace) return 'unnamed_container';
  if (projectId !== undefined && projectId !== entry.projectId) return 'other_place';
  if (regionId !== undefined && regionId !== entry.regionId) return 'other_place';
  if (has(entry.containers, containerKey(name, namespace))) return null;
  return isEmpty(entry.containers) ? 'no_containers' : 'other_container';
}

function has(containers: Containers, key: string): boolean {
  if (typeof containers === 'string') return containers === key;
  return containers instanceof Set ? containers.has(key) : (containers as readonly string[]).includes(key);
}

function isEmpty(containers: Containers): boolean {
  return Array.isArray(containers) && containers.length === 0;
}

/** Names contain no slash. `join` makes a flat string; V8 keeps the pieces of a concatenation. */
function containerKey(name: string, namespace: string): string {
  return [name, namespace].join('/');
}

function entryOf(row: CachedRow): Entry {
  const containers = row.containers.map(({ name, namespace }) => containerKey(name, namespace));
  return {
    projectId: row.projectId,
    regionId: row.regionId,
    hash: row.secretHash.toString('latin1'),
    containers:
      containers.length > fewContainers ? new Set(containers) : containers.length === 1 ? containers[0]! : containers,
    startsAt: row.createdAt.getTime(),
    endsAt: row.expire?.getTime() ?? Number.POSITIVE_INFINITY,
    isDisabled: row.isDisabled,
    isDeleted: row.deletedAt !== null,
    version: row.version,
  };
}
