/**
 * All API keys in memory, for `authorize`: it is asked before every request to every container, and goes on answering
 * while the database is away.
 *
 * Invariant: a change counts here before its request is answered (`apply`), and on every other server as soon as that
 * is told. Changes have versions in the order of their commits. A connection of the gate's own listens for a notice, asks
 * twice a second besides, and reads what is newer than what it has; when it breaks, it is opened again and asks first.
 * What could not be asked for changes nothing: the last known keys go on to open what they opened.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Clock } from '../../platform/clock.ts';
import { equalInConstantTime, sha256 } from '../../platform/crypto.ts';
import { openUnboundedPool } from '../../platform/db.ts';
import type { Db } from '../../platform/db.ts';
import type { Logger } from '../../platform/log.ts';
import * as store from './store.ts';
import type { GateRow } from './store.ts';

const pollMs = 500;
const reconnectMs = 100;
/** So many are read in one go that no request waits for it. */
const pageSize = 500;
/** Rows of deleted keys are there for a day; whoever was away for longer than this reads everything anew. */
const staleMs = 3_600_000;
/** More than these are looked up in a set: a list is smaller, and as fast. */
const fewContainers = 8;

export const refusals = {
  missing_key: { status: 401, message: 'send the API key in the header X-API-Key' },
  unknown_key: { status: 401, message: 'there is no such API key' },
  expired_key: { status: 401, message: 'the API key has expired' },
  disabled_key: { status: 403, message: 'the API key is disabled' },
  pending_key: { status: 403, message: 'the API key does not work yet' },
  unnamed_container: { status: 403, message: 'the proxy did not say which container is asked for' },
  other_place: { status: 403, message: 'the API key is of another project or region' },
  no_containers: { status: 403, message: 'the API key opens no container: its list is empty' },
  other_container: { status: 403, message: 'the API key does not open this container' },
} as const;
export type Refusal = keyof typeof refusals;

/** What a proxy asks for. Without project and region, keys of any are good. */
export interface Asked {
  name?: string | undefined;
  namespace?: string | undefined;
  projectId?: number | undefined;
  regionId?: number | undefined;
}

/** What a key opens, by `containerKey`: most open one. */
type Containers = string | readonly string[] | ReadonlySet<string>;

/** A hundred thousand of these are held, and looked through by the garbage collector: so they are made of few objects. */
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

export type KeyGate = ReturnType<typeof createKeyGate>;

export function createKeyGate({ db, clock, log }: { db: Db; clock: Clock; log: Logger }) {
  const entries = new Map<string, Entry>();
  const over = new AbortController();
  let version = 0;
  let askedAt = Number.NEGATIVE_INFINITY;
  let wake = () => {};
  let following: Promise<void> | undefined;
  const firstLoad = Promise.withResolvers<void>();
  /** They stay among the entries until nothing older than their deletion can come any more. */
  const deleted = new Set<string>();

  const put = (row: GateRow) => {
    if ((entries.get(row.keyId)?.version ?? 0) >= row.version) return;
    entries.set(row.keyId, entryOf(row));
    if (row.deletedAt) deleted.add(row.keyId);
  };

  const readAfter = async (client: pg.ClientBase, from: number, current: number): Promise<number> => {
    for (let last = from; ; ) {
      const rows = await store.changedAfter(client, last, pageSize);
      for (const row of rows) put(row);
      last = rows.at(-1)?.version ?? last;
      if (rows.length < pageSize) return Math.max(last, current);
    }
  };

  const catchUp = async (client: pg.ClientBase) => {
    const asked = performance.now();
    const current = await store.currentVersion(client);
    // An older database was put in this one's place, or what was deleted meanwhile is not told any more.
    const anew = current < version || asked - askedAt > staleMs;
    if (anew) {
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
    askedAt = asked;
    firstLoad.resolve();
  };

  /** Until the connection breaks. */
  const followOn = async (client: pg.PoolClient) => {
    client.on('notification', () => wake());
    client.once('end', () => wake());
    await client.query(`listen ${store.channel}`);
    while (!over.signal.aborted) {
      const woken = new Promise<void>((resolve) => (wake = resolve));
      await catchUp(client);
      await Promise.race([woken, sleep(pollMs, undefined, { ref: false })]);
    }
  };

  const follow = async () => {
    const pool = openUnboundedPool(db, log);
    while (!over.signal.aborted) {
      let client: pg.PoolClient | undefined;
      try {
        client = await pool.connect();
        await followOn(client);
      } catch (error) {
        log.debug({ err: error }, 'API keys are not in step with the database');
      } finally {
        client?.release(true);
      }
      if (!over.signal.aborted) await sleep(reconnectMs, undefined, { ref: false });
    }
    await pool.end();
  };

  return {
    /** Reads all keys, and stays in step from then on. Resolves when all are there, or after a while without a database. */
    async start(): Promise<void> {
      following ??= follow();
      await Promise.race([firstLoad.promise, sleep(5000, undefined, { ref: false })]);
    },

    async stop(): Promise<void> {
      over.abort();
      wake();
      await following;
    },

    /** What this server has committed counts at once. */
    apply: put,

    /** Whether a key of the database has come here yet. True where nobody asks the gate. */
    knows: (keyId: string) => following === undefined || entries.has(keyId),

    /** False until all keys were read once: then nothing can be said. */
    isLoaded: () => askedAt >= 0,

    /** How many keys there are, and how long ago the database was last heard of. */
    state: () => ({ keys: entries.size, ageSeconds: (performance.now() - askedAt) / 1000 }),

    /** Why the key does not open the container; null when it does. */
    refusal(key: string | undefined, asked: Asked): Refusal | null {
      if (!key) return 'missing_key';
      const dot = key.indexOf('.');
      const entry = entries.get(key.slice(0, Math.max(dot, 0)));
      if (!entry || entry.isDeleted) return 'unknown_key';
      if (!equalInConstantTime(Buffer.from(entry.hash, 'latin1'), sha256(key.slice(dot + 1)))) return 'unknown_key';
      const now = clock.now().getTime();
      if (entry.isDisabled) return 'disabled_key';
      if (entry.endsAt <= now) return 'expired_key';
      if (entry.startsAt > now) return 'pending_key';
      return refusalOfContainer(entry, asked);
    },
  };
}

function refusalOfContainer(entry: Entry, { name, namespace, projectId, regionId }: Asked): Refusal | null {
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

/** A name has no slash in it. Joined, because text that is put together with `+` or a template is kept in its pieces. */
function containerKey(name: string, namespace: string): string {
  return [name, namespace].join('/');
}

function entryOf(row: GateRow): Entry {
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
