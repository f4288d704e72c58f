/**
 * The database as graphile-worker sees it: one that never breaks. A statement that fails because the database is away is
 * tried again until it is back, because graphile-worker awaits nothing of the statements that end a job: where one
 * failed, Node would end (and where they are batched, a failure keeps the pool from ever stopping).
 *
 * All its statements may be run twice. What a lost answer leaves behind (a job that was taken, and nobody knows) is for
 * `lost` to see to. Transactions are not for this pool: migrations have run before.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { isUnavailable } from '../platform/db.ts';

const pauseMs = 250;
type Query = (...args: unknown[]) => Promise<unknown>;
type Listener = (error?: Error, client?: pg.PoolClient, release?: () => void) => void;

/**
 * `lost` hears of every statement whose outcome nobody knows. After `shutdown`, what cannot be done is left undone.
 * `holding` gives the connection that listens for new jobs.
 */
export function retryingPool(pool: pg.Pool, holding: pg.Pool, shutdown: AbortSignal, lost: () => void): pg.Pool {
  const once: Query = async (...args) => {
    const client = await pool.connect();
    let broken = false;
    try {
      return await (client.query as Query)(...args);
    } catch (error) {
      broken = isUnavailable(error);
      if (broken) lost();
      throw error;
    } finally {
      client.release(broken);
    }
  };
  const query: Query = async (...args) => {
    for (;;) {
      try {
        return await once(...args);
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        if (shutdown.aborted) return { rows: [], rowCount: 0 };
        await sleep(pauseMs, undefined, { signal: shutdown }).catch(() => {});
      }
    }
  };
  const client = { query, release: () => {} };
  // The listener for new jobs takes a connection of its own by callback, and gets another one by itself when it breaks.
  const connect = (listener?: Listener) => (listener ? holding.connect(listener as never) : Promise.resolve(client));
  return new Proxy(pool, {
    get(target, name) {
      if (name === 'connect') return connect;
      if (name === 'query') return query;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
