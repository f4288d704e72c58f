/**
 * Writes that a transaction sends together: each is a PL/pgSQL function, and one statement calls all of them in order.
 *
 * Why: a change of a resource inserts rows, a task and its job, counts rows, reserves quota and writes an audit entry. Sent
 * one by one, each costs a trip through the event loop, and the counters stay locked meanwhile. PostgreSQL caches the plans
 * inside a function, and each statement inside sees what the previous ones wrote and fires their triggers.
 *
 * The name of a function ends with a hash of its definition, so servers of different versions share a database during an
 * upgrade. Functions of earlier versions stay.
 */
import { hash } from 'node:crypto';
import type pg from 'pg';
import { nameStatement, PreparedQuery, type Statement } from './prepared-query.ts';

/** Not `cloudyard`: as the name of the user it would come first in the search path. */
const schema = 'cloudyard_writes';

export interface WriteOptions {
  /** SQL types of the parameters, separated by commas; the body refers to them as `$1`, `$2`, … */
  parameters: string;
  /** PL/pgSQL between `begin` and `end`. Local variables need a prefix that no column has. */
  body: string;
  declare?: string;
  /** The body returns JSON, which `onResult` gets. */
  returns?: 'json' | 'jsonb';
  /** It locks a row that many transactions lock, so it runs after the other writes of its statement. */
  hot?: boolean;
  /**
   * Plans each statement once for each connection. For statements that read a list: PostgreSQL expects ten elements, so it
   * would prefer a new plan for each call with a shorter list.
   */
  isPlannedOnce?: boolean;
  /** The error to throw for an SQLSTATE that the body raises; `detail` is the raised detail. */
  errors?: Record<string, (detail: string) => Error>;
}

interface Definition extends WriteOptions {
  /** With its schema. */
  name: string;
  sql: string;
}

/** A call of a function that has not been sent. */
export interface Write {
  definition: Definition;
  values: unknown[];
  onResult?: ((result: never) => void) | undefined;
}

/** By the name without its schema and hash. */
const definitions = new Map<string, Definition>();

/**
 * Defines a write, or a function that statements call by its name. Call it when a module is loaded.
 * @throws when another write has the name
 */
export function defineWrite(name: string, options: WriteOptions): Definition {
  if (definitions.has(name)) throw new Error(`two writes are named ${name}`);
  const { parameters, body, declare, returns = 'void', isPlannedOnce } = options;
  const planning = isPlannedOnce ? 'set plan_cache_mode = force_generic_plan ' : '';
  const rest = `(${parameters}) returns ${returns} language plpgsql ${planning}as $cloudyard$
${declare ? `declare ${declare}\n` : ''}begin
${body}
end $cloudyard$`;
  const qualified = `${schema}.${name}_${hash('sha256', rest).slice(0, 8)}`;
  const definition = { ...options, name: qualified, sql: `create or replace function ${qualified}${rest}` };
  definitions.set(name, definition);
  return definition;
}

/** Creates the functions that the database does not have. Its caller holds the lock of migrations. */
export async function installWrites(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select n.nspname || '.' || p.proname as name from pg_proc p join pg_namespace n on n.oid = p.pronamespace
     where n.nspname = $1`,
    [schema],
  );
  const installed = new Set(rows.map(({ name }) => name));
  const missing = [...definitions.values()].filter(({ name }) => !installed.has(name));
  if (missing.length === 0) return;
  await client.query(`create schema if not exists ${schema}; ${missing.map(({ sql }) => sql).join(';\n')}`);
}

/** Connections keep prepared statements, so only the first combinations are prepared; they are the frequent ones. */
const maxPrepared = 500;
/** One name for each combination of functions, because PostgreSQL limits names to 63 bytes. */
const statements = new Map<string, Statement>();

function statementOf(writes: Write[], setting: string | undefined): Statement {
  const key = [setting, ...writes.map(({ definition }) => definition.name)].join();
  let statement = statements.get(key);
  if (!statement) {
    let parameter = 0;
    const calls = writes.map(({ definition, values }, i) => {
      const call = `${definition.name}(${values.map(() => `$${++parameter}`).join(', ')})`;
      return `${call} as r${i}`;
    });
    // PostgreSQL evaluates a select list from left to right.
    const first = setting === undefined ? [] : [`set_config('${setting}', 'on', true)`];
    const text = `select ${[...first, ...calls].join(',\n  ')}`;
    if (statements.size >= maxPrepared) return { text };
    statement = nameStatement(`writes_${statements.size}`, text);
    statements.set(key, statement);
  }
  return statement;
}

/** Sends the writes as one statement. `setting`: a setting that is on until the end of the transaction. */
export async function sendWrites(client: pg.ClientBase, given: Write[], setting?: string): Promise<void> {
  const hot = given.filter(({ definition }) => definition.hot);
  const writes = hot.length > 0 ? [...given.filter(({ definition }) => !definition.hot), ...hot] : given;
  const values = writes.flatMap((write) => write.values);
  const query = new PreparedQuery(statementOf(writes, setting), values);
  const { rows } = await query.run(client).catch((error: unknown) => {
    throw translated(writes, error);
  });
  writes.forEach(({ onResult }, i) => onResult?.(rows[0]![`r${i}`] as never));
}

function translated(writes: Write[], error: unknown): unknown {
  const { code, detail } = error as Partial<pg.DatabaseError>;
  if (code === undefined) return error;
  const known = writes.find(({ definition }) => definition.errors?.[code]);
  return known ? known.definition.errors![code]!(detail ?? '') : error;
}
