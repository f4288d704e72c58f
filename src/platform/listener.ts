/**
 * The connection on which a process listens for notifications of PostgreSQL. All followers of a process share it.
 *
 * Failure modes: a broken connection is opened again. Notifications in between are lost, so `onConnected` runs again and each
 * follower must recover by itself. A connection that does not answer within `pingMs` counts as broken.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { aborted } from 'node:util';
import type pg from 'pg';
import { type Db, openUnboundedPool } from './db.ts';
import type { Logger } from './log.ts';
import { within } from './within.ts';

const reconnectMs = 100;
const pingMs = 5000;

interface Follower {
  onNotification(payload: string): void;
  /** Called when a new connection listens. It may return when `lost` aborts; an error breaks the connection. */
  onConnected(client: pg.ClientBase, lost: AbortSignal): Promise<void>;
}

export type Listener = ReturnType<typeof createListener>;

interface Connection {
  client: pg.PoolClient;
  lost: AbortController;
}

/**
 * One connection for all channels, opened with the first follower and closed with the last. It connects again after a
 * break.
 */
export function createListener({ db, log }: { db: Db; log: Logger }) {
  const followers = new Map<string, Follower>();
  const works = new Map<string, Promise<void>>();
  let connection: Connection | null = null;
  let running: { over: AbortController; ended: Promise<void> } | null = null;

  const attach = (channel: string, { client, lost }: Connection) => {
    const work = async () => {
      try {
        await client.query(`listen ${channel}`);
        await followers.get(channel)?.onConnected(client, lost.signal);
      } catch (error) {
        if (!lost.signal.aborted) log.debug({ err: error, channel }, 'lost the connection for notifications');
        lost.abort();
      }
    };
    works.set(channel, work());
  };

  const ping = async ({ client, lost }: Connection) => {
    while (!lost.signal.aborted) {
      await sleep(pingMs, undefined, { ref: false, signal: lost.signal }).catch(() => {});
      if (lost.signal.aborted) return;
      await within(pingMs, () => client.query('select')).catch(() => lost.abort());
    }
  };

  const listenOnce = async (pool: pg.Pool, over: AbortSignal) => {
    const client = await pool.connect();
    const lost = new AbortController();
    const end = () => lost.abort();
    client.once('end', end);
    over.addEventListener('abort', end);
    client.on('notification', ({ channel, payload }) => followers.get(channel)?.onNotification(payload ?? ''));
    connection = { client, lost };
    const broken = aborted(lost.signal, client);
    if (over.aborted) lost.abort();
    for (const channel of followers.keys()) attach(channel, connection);
    void ping(connection);
    await broken;
    connection = null;
    over.removeEventListener('abort', end);
    client.release(true);
    await Promise.all(works.values());
  };

  const run = async (over: AbortSignal) => {
    const pool = openUnboundedPool(db, log);
    while (!over.aborted) {
      await listenOnce(pool, over).catch((error: unknown) =>
        log.debug({ err: error }, 'cannot listen for notifications'),
      );
      if (!over.aborted) await sleep(reconnectMs, undefined, { ref: false });
    }
    await pool.end();
  };

  return {
    /** Follows a channel, which has no other follower. Returns a function that ends this. */
    follow(channel: string, follower: Follower): () => Promise<void> {
      followers.set(channel, follower);
      if (connection) attach(channel, connection);
      if (!running) {
        const over = new AbortController();
        running = { over, ended: run(over.signal) };
      }
      return async () => {
        followers.delete(channel);
        if (followers.size > 0 || !running) return;
        const { over, ended } = running;
        running = null;
        over.abort();
        await ended;
      };
    },
  };
}
