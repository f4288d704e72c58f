/**
 * The connection of a worker to the job queue. All statements that assign or end its jobs run on it, one at a time.
 *
 * Invariant: a worker holds an advisory lock named after it on this connection for as long as it lives. While the lock is
 * held, no other worker takes its jobs. After a break the lock is taken again on a new connection, which proves that the old
 * one is gone: no statement of it can assign a job any more.
 */
import { drizzle } from 'drizzle-orm/node-postgres';
import type pg from 'pg';
import { type Db, detectLostHost } from '../platform/db.ts';
import { channelOf, isLockOf, workerLocks } from './jobs.ts';

/**
 * Statements of the queue must use its indexes, also when they were planned while it was empty. Without these settings
 * PostgreSQL keeps a plan for an empty queue, which reads the whole backlog.
 */
const planByIndex = ['seqscan', 'bitmapscan', 'hashjoin', 'mergejoin', 'sort']
  .map((node) => `set enable_${node} = off;`)
  .join(' ');
const settings = `${planByIndex} set jit = off; set plan_cache_mode = force_generic_plan; ${detectLostHost}`;

export type Session = Awaited<ReturnType<typeof openSession>>;

/**
 * Opens the session and takes the lock. `onWake` is called with the queue of each notification. `db` is for the statements in
 * jobs.ts; `broken` resolves when the connection has broken.
 */
export async function openSession(pool: pg.Pool, workerId: string, queues: string[], onWake: (queue: string) => void) {
  const client = await pool.connect();
  const broken = new Promise<void>((resolve) => client.once('end', resolve));
  try {
    await client.query(settings);
    // A connection that broke on this side only still holds the lock.
    await client.query(`select pg_terminate_backend(pid) from pg_locks where ${isLockOf('$1')}`, [workerId]);
    await client.query('select pg_advisory_lock($1, hashtext($2))', [workerLocks, workerId]);
    const queueOf = new Map(queues.map((queue) => [channelOf(queue), queue]));
    client.on('notification', ({ channel }) => onWake(queueOf.get(channel)!));
    for (const channel of queueOf.keys()) await client.query(`listen "${channel}"`);
  } catch (error) {
    client.release(true);
    throw error;
  }
  return { db: drizzle({ client }) as unknown as Db, broken, close: () => client.release(true) };
}
