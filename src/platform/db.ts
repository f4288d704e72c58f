/**
 * Connections to PostgreSQL, and transactions.
 *
 * Invariant: every function that writes takes `tx` as its first argument and never uses the pool, so a write cannot escape
 * its transaction. A transaction makes no driver call and no other network request: a long one would exhaust the pool.
 */
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import { defineWrite, sendWrites, type Write, type WriteOptions } from './deferred-writes.ts';
import type { Logger } from './log.ts';
import { closeLostConnections } from './lost-servers.ts';
import { causesOf, isContended, isRetryable, isUnavailable, postgresCode } from './db-errors.ts';
import { createPrimaryClient } from './primary-client.ts';
import { nameStatement, PreparedQuery, type Statement } from './prepared-query.ts';
import { parseInstant } from './timestamps.ts';

type Query = NodePgDatabase<Record<string, never>>;
export type Db = Query & { readonly $client: pg.Pool };
declare const inTransaction: unique symbol;
export type Tx = Query & {
  /** Statements of the transaction; nothing but `query`. */
  readonly $client: Pick<pg.PoolClient, 'query'>;
  /** Writes to send with the next statement or the commit. */
  readonly pending: Write[];
  /** To call when the transaction has committed. */
  readonly committed: (() => void)[];
  /** Sends them now, so that their errors are thrown here. */
  sendPending(): Promise<void>;
  readonly [inTransaction]: true;
};

export type ConnectionOptions = Pick<pg.PoolConfig, 'host' | 'port' | 'user' | 'database' | 'connectionString'>;

// A pool of 8 was faster than one of 32 (docs/decisions/0003-database.md).
const defaultPoolSize = 8;

// Counts and sizes are far below 2^53, and JSON needs numbers.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);
pg.types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, parseInstant);

export interface PoolOptions {
  /** Default: 8. */
  poolSize?: number;
  /** What PostgreSQL shows as `application_name`. */
  name?: string;
  /** Limits the time of a statement, for example `25s`. Default: no limit. */
  statementTimeout?: string;
  log: Logger;
}

/** Opens a pool, which connects with the first statement. End it with `$client.end()`. */
export function connect(options: ConnectionOptions & PoolOptions): Db {
  const { log, poolSize, name, statementTimeout, ...connection } = options;
  const config = {
    ...connection,
    max: poolSize ?? defaultPoolSize,
    application_name: name ?? 'cloudyard',
    connectionTimeoutMillis: 5000,
    // A statement is sent without waiting for the result of the one before.
    pipeline: true,
  };
  return drizzle({ client: openPool(config, log, statementTimeout) });
}

/**
 * A second, unbounded pool on the same database, for connections that are held: advisory locks and LISTEN. In the shared
 * pool, enough of them would block all statements.
 */
export function openUnboundedPool(
  { $client: { options } }: Db,
  log: Logger,
  limits: Pick<pg.PoolConfig, 'query_timeout' | 'connectionTimeoutMillis'> = {},
): pg.Pool {
  // The password is not an enumerable property.
  return openPool({ ...options, password: options.password, max: Infinity, ...limits }, log);
}

function openPool(config: pg.PoolConfig, log: Logger, statementTimeout = '0'): pg.Pool {
  const { host, port, user, password, database, connectionString } = config;
  const pool = new pg.Pool({ ...config, Client: createPrimaryClient } as unknown as pg.PoolConfig);
  closeLostConnections(pool, { host, port, user, password, database, connectionString } as pg.ClientConfig);
  // An 'error' event without a listener ends the process; the next checkout replaces a broken connection.
  const lost = (error: Error) => log.warn({ err: error }, 'database connection lost');
  pool.on('error', lost);
  pool.on('connect', (client) => {
    client.on('error', lost);
    // A failure breaks the connection, and its statements fail as well.
    client.query(setTimeLimits(statementTimeout)).catch(() => {});
  });
  return pool;
}

/**
 * A process that is frozen, or whose host is gone, would keep the locks of its transaction: PostgreSQL notices the end of a
 * host after two hours. A transaction waits for nothing but its statements. A session of another program, such as a psql that
 * an operator left open, may keep a lock for any time: a statement that needs it fails, so that requests and stops end. Limits
 * of the operator stay.
 */
const setTimeLimits = (statementTimeout: string) => `select set_config(name, value, false)
  from (values ('idle_in_transaction_session_timeout', '30s'), ('lock_timeout', '15s'),
    ('statement_timeout', '${statementTimeout}')) as limits (name, value)
  where current_setting(name) = '0'`;

const attempts = 5;

/**
 * Runs `work` in one transaction. After a deadlock, a serialization failure or a violated foreign key `work` runs again, so
 * it must not have effects outside `tx`.
 *
 * Deferred writes (`deferred`) are sent before the next other statement of `work`, or with the commit. A transaction of
 * deferred writes alone is one statement and one round trip.
 */
export async function transaction<T>(db: Db, work: (tx: Tx) => Promise<T>, frame: Frame = {}): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const session = openSession(db.$client, frame);
    try {
      const result = await work(session.tx);
      await session.commit();
      for (const call of session.tx.committed) call();
      return result;
    } catch (thrown) {
      await session.rollback();
      const error = causeOf(thrown, session.writeError());
      if (attempt === attempts || !isRetryable(error)) throw error;
    }
  }
}

/** SQLSTATE of a statement that was sent after one of the same transaction had failed. */
const failedTransaction = '25P02';

/** The error of a deferred write if `thrown` is a consequence of it: Drizzle wraps errors. Otherwise `thrown`. */
function causeOf(thrown: unknown, writeError: unknown): unknown {
  if (writeError === undefined || postgresCode(thrown) === failedTransaction) return writeError ?? thrown;
  return causesOf(thrown).find((cause) => cause === writeError) ?? thrown;
}

/**
 * Throws when a transaction must not continue, so that it is rolled back. Called before each statement, and with
 * `isCommit` before the statement that commits is sent.
 */
export type Guard = (isCommit: boolean) => void;

/** What a transaction begins and ends with, without a round trip of its own. */
interface Frame {
  /** A setting that is on until its end. */
  setting?: string;
  /** Its last write. Called when the work is done. */
  last?(): Write;
  /** Commits the writes of a transaction that sends nothing else; default: `sendAlone`. Called after `last`. */
  send?(pool: pg.Pool, writes: Write[], setting?: string, guard?: Guard): Promise<void>;
  guard?: Guard | undefined;
}

/** Calls `work` when the transaction has committed; at once for a `Db`, whose statements commit by themselves. */
export function afterCommit(on: Db | Tx, work: () => void): void {
  if ('pending' in on) on.committed.push(work);
  else work();
}

/** The connection is taken, and the transaction begun, by the first statement. All connections send in pipeline mode. */
function openSession(pool: pg.Pool, { setting, last, send: sendAll = sendAlone, guard }: Frame) {
  const pending: Write[] = [];
  let opening: Promise<pg.PoolClient> | undefined;
  let isOver = false;
  let writeError: unknown;

  const open = async (): Promise<pg.PoolClient> => {
    const client = await pool.connect();
    // The next statement is sent with it, and fails with it.
    client.query(setting ? `begin; set local ${setting} = 'on'` : 'begin').catch(() => {});
    return client;
  };
  const send = (client: pg.PoolClient, writes: Write[]): Promise<void> =>
    sendWrites(client, writes).catch((error: unknown) => {
      throw (writeError = error);
    });
  const query = async (...statement: Parameters<pg.ClientBase['query']>): Promise<unknown> => {
    const client = await (opening ??= open());
    guard?.(false);
    const [first] = statement as unknown[];
    const run = () => (first instanceof PreparedQuery ? first.run(client) : client.query(...statement));
    if (pending.length === 0) return run();
    return afterWrites(send(client, pending.splice(0)), run() as unknown as Promise<unknown>);
  };
  const end = async (statement: string, writes: Write[]): Promise<void> => {
    if (!opening) return;
    isOver = true;
    const client = await opening;
    let broken: Error | undefined;
    const written = writes.length > 0 ? send(client, writes) : Promise.resolve();
    const ended = client.query(statement).catch((error: Error) => {
      broken = error;
      throw error;
    });
    await afterWrites(written, ended).finally(() => client.release(broken));
  };
  const sendPending = async (): Promise<void> => {
    if (pending.length > 0) await send(await (opening ??= open()), pending.splice(0));
  };
  const drizzled = drizzle({ client: { query } as unknown as pg.PoolClient });

  return {
    tx: Object.assign(drizzled, { pending, sendPending, committed: [] }) as unknown as Tx,
    async commit(): Promise<void> {
      const writes = last ? [...pending.splice(0), last()] : pending.splice(0);
      if (opening) guard?.(true);
      if (opening) return end('commit', writes);
      if (writes.length > 0) await sendAll(pool, writes, setting, guard);
    },
    /** Has no effect after the commit. */
    async rollback(): Promise<void> {
      if (!isOver) await end('rollback', []).catch(() => {});
    },
    /** The error of a deferred write, which a failed query of Drizzle hides. */
    writeError: () => writeError,
  };
}

/** Waits for both. The error of the writes counts, because the statement behind them fails only as its consequence. */
async function afterWrites<T>(writes: Promise<unknown>, statement: Promise<T>): Promise<T> {
  const [written, done] = await Promise.allSettled([writes, statement]);
  if (written.status === 'rejected') throw written.reason;
  if (done.status === 'rejected') throw done.reason;
  return done.value;
}

/** The deferred writes of `work`, which sends no other statement, and what it calls after the commit. */
export async function collectWrites(work: (tx: Tx) => Promise<void>): Promise<Pick<Tx, 'pending' | 'committed'>> {
  const query = () => Promise.reject(new Error('this transaction only defers writes'));
  const collected = { pending: [] as Write[], committed: [] as (() => void)[] };
  await work({ ...collected, $client: { query }, sendPending: query } as unknown as Tx);
  return collected;
}

/** Sends writes as a transaction of their own. */
export async function sendAlone(pool: pg.Pool, writes: Write[], setting?: string, guard?: Guard): Promise<void> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    guard?.(true);
    await sendWrites(client, writes, setting);
  } catch (error) {
    // `pool.query` would close the connection after any error, such as an exceeded quota.
    if (isUnavailable(error) && !isContended(error)) broken = error as Error;
    throw error;
  } finally {
    client.release(broken);
  }
}

/**
 * A function whose write runs later than its call. In a transaction, its promise resolves at once: the write is sent with the
 * following ones, and the next statement that is not deferred, or the commit, throws its error. Outside of a transaction the
 * write is sent at once.
 */
export type DeferredWrite<Values extends unknown[], On extends Db | Tx = Tx> = (
  on: On,
  ...values: Values
) => Promise<void>;

/**
 * Defines a deferred write (deferred-writes.ts). `Values` are its parameters as a labelled tuple; `Result` is what its body
 * returns.
 * @throws when another write has the name
 */
export function deferred<Values extends unknown[], Result = void, On extends Db | Tx = Tx>(
  name: string,
  options: WriteOptions,
) {
  const definition = defineWrite(name, options);
  const write = (values: Values, onResult?: (result: Result) => void): Write => ({ definition, values, onResult });
  const send = async (on: Db | Tx, values: Values, onResult?: (result: Result) => void): Promise<void> => {
    if ('pending' in on) on.pending.push(write(values, onResult));
    else await sendAlone(on.$client, [write(values, onResult)]);
  };
  const run: DeferredWrite<Values, On> = (on, ...values) => send(on, values);
  return Object.assign(run, {
    /** Without sending it. */
    write: (...values: Values) => write(values),
    /** `onResult` is called when the result has arrived, which is before the commit. */
    withResult: (on: On, onResult: (result: Result) => void, ...values: Values) => send(on, values, onResult),
  });
}

/**
 * A prepared statement: PostgreSQL parses and plans it once for each connection. For hot paths, where building a query costs
 * more than running it. `Values` are its parameters as a labelled tuple; `On` is `Tx` for a statement that locks or writes
 * rows.
 * @throws when another statement has the name
 */
export function prepared<
  Row extends pg.QueryResultRow,
  Values extends unknown[] = unknown[],
  On extends Db | Tx = Db | Tx,
>(name: string, text: string) {
  const statement = nameStatement(name, text);
  return (on: On, ...values: Values): Promise<Row[]> => runStatement<Row>(on, statement, values);
}

/** A prepared statement that returns one row, or none: null. */
export function preparedRow<
  Row extends pg.QueryResultRow,
  Values extends unknown[] = unknown[],
  On extends Db | Tx = Db | Tx,
>(name: string, text: string) {
  const run = prepared<Row, Values, On>(name, text);
  return async (on: On, ...values: Values): Promise<Row | null> => (await run(on, ...values))[0] ?? null;
}

/** A prepared statement that returns one column: its values. */
export function preparedColumn<Value, Values extends unknown[] = unknown[], On extends Db | Tx = Db | Tx>(
  name: string,
  text: string,
) {
  const run = prepared<Record<string, Value>, Values, On>(name, text);
  return async (on: On, ...values: Values): Promise<Value[]> =>
    (await run(on, ...values)).map((row) => Object.values(row)[0]!);
}

/** A prepared statement that returns one row of one column, such as a count: its value. */
export function preparedValue<Value, Values extends unknown[] = unknown[], On extends Db | Tx = Db | Tx>(
  name: string,
  text: string,
) {
  const run = preparedColumn<Value, Values, On>(name, text);
  return async (on: On, ...values: Values): Promise<Value> => (await run(on, ...values))[0] as Value;
}

/** A prepared statement of which it matters only whether it returns a row. */
export function preparedExists<Values extends unknown[] = unknown[], On extends Db | Tx = Db | Tx>(
  name: string,
  text: string,
) {
  const run = prepared<object, Values, On>(name, text);
  return async (on: On, ...values: Values): Promise<boolean> => (await run(on, ...values)).length > 0;
}

/** The values of fields of all rows, one list for each field: parameters for `unnest`. */
export function columnsOf<Row, const Fields extends readonly (keyof Row)[]>(rows: readonly Row[], ...fields: Fields) {
  return fields.map((field) => rows.map((row) => row[field])) as { [I in keyof Fields]: Row[Fields[I]][] };
}

/** Runs a prepared statement in a transaction or on its own, without the SQL builder. */
export async function runStatement<Row extends pg.QueryResultRow>(
  on: Db | Tx,
  statement: Statement,
  values: unknown[],
): Promise<Row[]> {
  const query = new PreparedQuery<Row>(statement, values);
  const { rows } = 'pending' in on ? await on.$client.query<Row>(query as never) : await query.run(on.$client);
  return rows;
}

/**
 * SQL for connections that hold a lock for this process: PostgreSQL detects within about 9 s that the client host is gone.
 * Has no effect on a unix socket. Keepalive probes start only when all data is acknowledged; the user timeout limits the time
 * until then.
 */
export const detectLostHost = `set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 2; set tcp_keepalives_count = 2;
  set tcp_user_timeout = 9000`;
