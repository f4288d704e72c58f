/**
 * PostgreSQL, and the one way into a transaction.
 *
 * Invariant: whatever writes takes `tx` first and never reaches for the pool, so a write cannot escape the transaction
 * it belongs to. No driver call and no network inside one: a transaction is short, or the pool is empty.
 */
import { drizzle } from 'drizzle-orm/node-postgres';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import type { Logger } from './log.ts';

type Query = NodePgDatabase<Record<string, never>>;
export type Db = Query & { readonly $client: pg.Pool };
declare const inTransaction: unique symbol;
export type Tx = Query & { readonly $client: pg.PoolClient; readonly [inTransaction]: true };

export type ConnectionOptions = Pick<pg.PoolConfig, 'host' | 'port' | 'user' | 'database' | 'connectionString'>;

// A pool of 8 beat one of 32 (docs/decisions/0003-database.md).
const defaultPoolSize = 8;

// Counts and sizes are far below 2^53; a number is what JSON wants.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

export function connect(options: ConnectionOptions & { poolSize?: number; name?: string; log: Logger }): Db {
  const { log, poolSize, name, ...connection } = options;
  const config = {
    ...connection,
    max: poolSize ?? defaultPoolSize,
    application_name: name ?? 'cloudyard',
    connectionTimeoutMillis: 5000,
    keepAlive: true,
  };
  return drizzle({ client: openPool(config, log) }) as unknown as Db;
}

/**
 * Another pool on the same database, without a bound, for connections that are held instead of borrowed: a lock for life,
 * a LISTEN. In the pool that statements share, enough of them would keep every statement waiting for ever.
 */
export function openUnboundedPool({ $client: { options } }: Db, log: Logger): pg.Pool {
  // The password is no enumerable property.
  return openPool({ ...options, password: options.password, max: Infinity }, log);
}

function openPool(config: pg.PoolConfig, log: Logger): pg.Pool {
  const pool = new pg.Pool(config);
  // An 'error' event without a listener ends Node; a broken connection is replaced by the next checkout.
  const lost = (error: Error) => log.warn({ err: error }, 'database connection lost');
  pool.on('error', lost);
  pool.on('connect', (client) => client.on('error', lost));
  return pool;
}

const serializationFailure = '40001';
const deadlock = '40P01';
const attempts = 5;

/**
 * Runs `work` in one transaction: all of it is committed, or none. A deadlock or serialization failure runs it again,
 * so `work` has no effect outside `tx`.
 */
export async function transaction<T>(db: Db, work: (tx: Tx) => Promise<T>, frame: Frame = bare): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await once(db, work, frame);
    } catch (error) {
      const code = postgresCode(error);
      if (attempt === attempts || (code !== serializationFailure && code !== deadlock)) throw error;
    }
  }
}

/**
 * What is sent to begin and to end a transaction: statements before and after the work that cost no round trip of their
 * own, and above all none while locks are held. The second is asked for once the work is done.
 */
export interface Frame {
  begin: string;
  commit(): string;
}

const bare: Frame = { begin: 'begin', commit: () => 'commit' };

async function once<T>(db: Db, work: (tx: Tx) => Promise<T>, frame: Frame): Promise<T> {
  const client = await db.$client.connect();
  let broken: Error | undefined;
  try {
    await client.query(frame.begin);
    const result = await work(drizzle({ client }) as unknown as Tx);
    await client.query(frame.commit());
    return result;
  } catch (error) {
    await client.query('rollback').catch((rollbackError: Error) => {
      broken = rollbackError;
    });
    throw error;
  } finally {
    client.release(broken);
  }
}

/**
 * A statement that PostgreSQL parses and plans once a connection: for the hot paths, where building a query costs more
 * than running it. `name` is unique in the program.
 */
export function prepared<Row extends pg.QueryResultRow>(name: string, text: string) {
  return async (on: Db | Tx, ...values: unknown[]): Promise<Row[]> => {
    const result = await (on.$client as pg.Pool).query<Row>({ name, text, values });
    return result.rows;
  };
}

/** The SQLSTATE of an error of PostgreSQL, however deep Drizzle wrapped it. */
export function postgresCode(error: unknown): string | undefined {
  return postgresError(error)?.code;
}

/** The constraint that a statement broke, e.g. `projects_client_id_name`. */
export function violatedConstraint(error: unknown): string | undefined {
  return postgresError(error)?.constraint;
}

function postgresError(error: unknown): pg.DatabaseError | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof pg.DatabaseError) return cause;
  }
  return undefined;
}

const connectionCodes = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOENT', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND']);
/** What `pg` says itself has no code. */
const brokenConnection =
  /Connection terminated|connection error and is not queryable|timeout exceeded when trying to connect|Client was closed/;

/** True when the database could not be reached, went away in the middle, or is starting: worth another try soon. */
export function isUnavailable(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const code = (cause as { code?: string }).code ?? '';
    // Class 08: connection; 57P01..3: shutdown, crash, starting up; 53300: too many connections.
    if (code.startsWith('08') || /^57P0[123]$/.test(code) || code === '53300' || connectionCodes.has(code)) return true;
    if (brokenConnection.test(cause.message)) return true;
  }
  return false;
}

/**
 * For a connection whose life stands for this process's: PostgreSQL notices within some 9 s when the host behind it is
 * gone. Without effect on a unix socket, which cannot outlive its host.
 */
export const detectLostHost = `set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 2; set tcp_keepalives_count = 2`;

/** A query of Drizzle that is built once a database: `build` ends in `.prepare(name)`. */
export function preparedQuery<Q>(build: (db: Db) => Q): (db: Db) => Q {
  const built = new WeakMap<Db, Q>();
  return (db) => {
    let query = built.get(db);
    if (query === undefined) built.set(db, (query = build(db)));
    return query;
  };
}
