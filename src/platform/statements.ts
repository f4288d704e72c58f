/**
 * Statements of stores, by what they return. Each is prepared (see `prepared`), so its name must be unique in the program.
 * `Values` are its parameters, as a labelled tuple. `On` is `Tx` where the statement locks or writes rows that must not be
 * seen or unlocked before the commit.
 */
import type pg from 'pg';
import { deferred, prepared } from './db.ts';
import type { Db, Tx } from './db.ts';
import type { WriteOptions } from './deferred-writes.ts';

type Statement<Values extends unknown[], On, Result> = (on: On, ...values: Values) => Promise<Result>;
type Row = pg.QueryResultRow;

export function selectRows<Values extends unknown[], Found extends Row, On extends Db | Tx = Db | Tx>(
  name: string,
  text: string,
): Statement<Values, On, Found[]> {
  return prepared<Found>(name, text);
}

/** The first row; null if there is none. */
export function selectRow<Values extends unknown[], Found extends Row, On extends Db | Tx = Db | Tx>(
  name: string,
  text: string,
): Statement<Values, On, Found | null> {
  const read = prepared<Found>(name, text);
  return async (on, ...values) => (await read(on, ...values))[0] ?? null;
}

/** The only column of every row. */
export function selectValues<Values extends unknown[], Value, On extends Db | Tx = Db | Tx>(
  name: string,
  text: string,
): Statement<Values, On, Value[]> {
  const read = prepared(name, text);
  return async (on, ...values) => (await read(on, ...values)).map((row) => Object.values(row)[0] as Value);
}

/** The only column of the only row. */
export function selectValue<Values extends unknown[], Value, On extends Db | Tx = Db | Tx>(
  name: string,
  text: string,
): Statement<Values, On, Value> {
  const read = selectValues<Values, Value, On>(name, text);
  return async (on, ...values) => (await read(on, ...values))[0] as Value;
}

/** Whether there is a row. For a write that returns rows: whether it wrote one. */
export function selectExists<Values extends unknown[], On extends Db | Tx = Db | Tx>(
  name: string,
  text: string,
): Statement<Values, On, boolean> {
  const read = prepared(name, text);
  return async (on, ...values) => (await read(on, ...values)).length > 0;
}

export function execute<Values extends unknown[], On extends Db | Tx = Db | Tx>(
  name: string,
  text: string,
): Statement<Values, On, void> {
  const run = prepared(name, text);
  return async (on, ...values) => void (await run(on, ...values));
}

/** A write that is sent with the following writes of its transaction (see `deferred`). */
export function deferredWrite<Values extends unknown[]>(
  name: string,
  options: WriteOptions,
): Statement<Values, Tx, void> {
  const write = deferred(name, options);
  return (tx, ...values) => write(tx, ...values);
}
