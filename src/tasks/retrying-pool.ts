/**
 * The database as graphile-worker sees it: one that never breaks. A statement that fails because the database is away is
 * retried until it is back. graphile-worker does not handle failures of the statements that end a job: one such failure
 * ends the Node process, or, where the statements are batched, keeps the pool from ever stopping.
 *
 * Every statement may therefore run twice, which all statements of graphile-worker tolerate. A lost response may leave a
 * job assigned without a runner; `onLost` has to handle that. Transactions are not supported: migrations have run before.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { isUnavailable } from '../platform/db.ts';

const pauseMs = 250;
type Query = (...args: unknown[]) => Promise<unknown>;
type Listener = (error?: Error, client?: pg.PoolClient, release?: () => void) => void;

/**
 * `onLost` is called for every statement whose outcome is unknown. After `shutdown`, a statement that cannot run is
 * skipped. `listenPool` provides the connection that listens for new jobs.
 */
export function retryingPool(pool: pg.Pool, listenPool: pg.Pool, shutdown: AbortSignal, onLost: () => void): pg.Pool {
  const once: Query = async (...args) => {
    const client = await pool.connect();
    let broken = false;
    try {
      return await (client.query as Query)(...args);
    } catch (error) {
      broken = isUnavailable(error);
      if (broken) onLost();
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
  // The listener for new jobs connects with a callback, and reconnects by itself when its connection breaks.
  const connect = (listener?: Listener) => (listener ? listenPool.connect(listener as never) : Promise.resolve(client));
  return new Proxy(pool, {
    get(target, name) {
      if (name === 'connect') return connect;
      if (name === 'query') return query;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
