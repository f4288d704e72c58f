/**
 * Connections to PostgreSQL, and transactions.
 *
 * Invariant: every function that writes takes `tx` as its first argument and never uses the pool, so a write cannot escape
 * its transaction. A transaction makes no driver call and no other network request: a long one would exhaust the pool.
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

// A pool of 8 was faster than one of 32 (docs/decisions/0003-database.md).
const defaultPoolSize = 8;

// Counts and sizes are far below 2^53, and JSON needs numbers.
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
 * A second, unbounded pool on the same database, for connections that are held: advisory locks and LISTEN. In the shared
 * pool, enough of them would block all statements.
 */
export function openUnboundedPool({ $client: { options } }: Db, log: Logger): pg.Pool {
  // The password is not an enumerable property.
  return openPool({ ...options, password: options.password, max: Infinity }, log);
}

function openPool(config: pg.PoolConfig, log: Logger): pg.Pool {
  const pool = new pg.Pool(config);
  // An 'error' event without a listener ends the process; the next checkout replaces a broken connection.
  const lost = (error: Error) => log.warn({ err: error }, 'database connection lost');
  pool.on('error', lost);
  pool.on('connect', (client) => client.on('error', lost));
  return pool;
}

const serializationFailure = '40001';
const deadlock = '40P01';
const attempts = 5;

/**
 * Runs `work` in one transaction. After a deadlock or a serialization failure `work` runs again, so it must not have
 * effects outside `tx`.
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
 * The texts that begin and end a transaction. They may contain further statements, which then cost no round trip, above all
 * none while locks are held. `commit` is called when the work is done.
 */
export interface Frame {
  begin: string;
  commit(): string;
}

const afterCommits = new WeakMap<object, (() => void)[]>();

/** Calls `work` when the transaction has committed; at once for a `Db`, whose statements commit by themselves. */
export function afterCommit(on: Db | Tx, work: () => void): void {
  const waiting = afterCommits.get(on);
  if (waiting) waiting.push(work);
  else work();
}

const bare: Frame = { begin: 'begin', commit: () => 'commit' };

async function once<T>(db: Db, work: (tx: Tx) => Promise<T>, frame: Frame): Promise<T> {
  const client = await db.$client.connect();
  let broken: Error | undefined;
  try {
    await client.query(frame.begin);
    const tx = drizzle({ client }) as unknown as Tx;
    const committed: (() => void)[] = [];
    afterCommits.set(tx, committed);
    const result = await work(tx);
    await client.query(frame.commit());
    for (const call of committed) call();
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
 * A prepared statement: PostgreSQL parses and plans it once for each connection. For hot paths, where building a query costs
 * more than running it. `name` must be unique in the program.
 */
export function prepared<Row extends pg.QueryResultRow>(name: string, text: string) {
  return async (on: Db | Tx, ...values: unknown[]): Promise<Row[]> => {
    const result = await (on.$client as pg.Pool).query<Row>({ name, text, values });
    return result.rows;
  };
}

/** The SQLSTATE of a PostgreSQL error, which Drizzle may have wrapped. */
export function postgresCode(error: unknown): string | undefined {
  return postgresError(error)?.code;
}

/** The constraint that a statement violated, for example `projects_client_id_name`. */
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
/** Errors of `pg` itself, which have no code. */
const brokenConnection =
  /Connection terminated|connection error and is not queryable|timeout exceeded when trying to connect|Client was closed/;

/** What a database that responds lacks, by SQLSTATE (class 53, and 58030). */
const shortages: Record<string, string> = {
  '53100': 'has no space left on its disk',
  '53200': 'is out of memory',
  '53300': 'has too many connections',
  '53400': 'has reached a configured limit',
  '58030': 'cannot access its disk',
};

/** Why the database could not run a statement although it responds, for example `has no space left on its disk`; or null. */
export function shortageOf(error: unknown): string | null {
  return shortages[postgresCode(error) ?? ''] ?? null;
}

/** True when the database could not be reached, broke the connection, is starting, or lacks resources: a retry may succeed. */
export function isUnavailable(error: unknown): boolean {
  if (shortageOf(error) !== null) return true;
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const code = (cause as { code?: string }).code ?? '';
    // Class 08: connection; 57P01..5: shutdown, crash, starting up, idle session ended.
    if (code.startsWith('08') || /^57P0[1235]$/.test(code) || connectionCodes.has(code)) return true;
    if (brokenConnection.test(cause.message)) return true;
  }
  return false;
}

/**
 * SQL for connections that hold a lock for this process: PostgreSQL detects within about 9 s that the client host is gone.
 * Has no effect on a unix socket.
 */
export const detectLostHost = `set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 2; set tcp_keepalives_count = 2`;

/** A Drizzle query that is built once for each database: `build` ends in `.prepare(name)`. */
export function preparedQuery<Q>(build: (db: Db) => Q): (db: Db) => Q {
  const built = new WeakMap<Db, Q>();
  return (db) => {
    let query = built.get(db);
    if (query === undefined) built.set(db, (query = build(db)));
    return query;
  };
}
