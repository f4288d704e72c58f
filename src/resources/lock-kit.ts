/** The locks of rows: statements that lock a row and read which task locks its resource. */
import { getTableName, sql, type SQL } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import { prepared, type Tx } from '../platform/db.ts';
import { defineWrite } from '../platform/deferred-writes.ts';
import { type ProjectRegion, type ScopedTable, selectOf } from './read-kit.ts';

const qualified = (column: PgColumn) => sql`${column.table}.${sql.identifier(column.name)}`;

/**
 * The id of the oldest active task of the resource whose id is in the column; null when the resource is not locked.
 * `condition`: which tasks `t` lock it.
 */
export function activeTask(id: PgColumn, condition = sql`true`): SQL<string | null> {
  return sql`(select t.id from tasks t where t.resource_id = ${qualified(id)}::text and t.state in ('NEW', 'RUNNING')
    and ${condition} order by t.created_on limit 1)`;
}

interface LockThenRead {
  /** The SQL types of the parameters of both texts. */
  parameters: string[];
  /** SQL: selects the row to lock. */
  row: string;
  /** SQL: selects one JSON value, to be read under the lock. */
  json: string;
}

/**
 * A prepared statement that locks a row, and then reads a JSON value into the column `under_lock`. A function reads it,
 * because each statement of a function sees all commits before it; a subselect would see those before the wait for the lock.
 */
export function lockThenRead<Row extends object>(name: string, { parameters, row, json }: LockThenRead) {
  const body = `return (${json});`;
  const read = defineWrite(`${name}_read`, { parameters: parameters.join(', '), body, returns: 'json' });
  const values = parameters.map((_, i) => `$${i + 1}`).join(', ');
  // A subselect that locks is not merged into the outer select, whose columns are therefore computed under the lock.
  const text = `select locked.*, ${read.name}(${values}) as under_lock from (${row} for update) as locked`;
  return prepared<Row, unknown[], Tx>(name, text);
}

/** A row, and the active task that locks the resource, if any. */
export type Locked<Row> = Row & { lockedBy: string | null };

/** The id, project and region of a row, and the types of tasks that do not lock it. */
export const lockParameters = ['uuid', 'int', 'int', 'text[]'];
export const lockCondition = 'id = $1 and project_id = $2 and region_id = $3';
export const lockingTask = (id: PgColumn) => activeTask(id, sql.raw('t.task_type <> all($4)'));

/**
 * Locks a row of a project and region, and reads under the lock which task locks the resource. `lockedBy`: SQL of that task's
 * id; by default the active task of the row whose type is not one of `concurrent`. `more`: SQL of other values to read.
 */
export function lockWithTask<T extends ScopedTable, More extends object = object>(
  table: T,
  lockedBy: SQL = lockingTask(table.id),
  name = `${getTableName(table)}_locked`,
  more = {} as { [Field in keyof More]: SQL },
) {
  const columns = { lockedBy, ...more };
  const lockIt = lockThenRead<T['$inferSelect'] & { under_lock: object }>(name, {
    parameters: lockParameters,
    row: `${selectOf(table)} where ${lockCondition}`,
    json: `select row_to_json(read) from (${selectOf(table, { columns })} where ${lockCondition}) as read`,
  });
  return async (
    tx: Tx,
    { projectId, regionId }: ProjectRegion,
    id: string,
    concurrent: readonly string[] = [],
  ): Promise<(Locked<T['$inferSelect']> & More) | null> => {
    const [locked] = await lockIt(tx, id, projectId, regionId, concurrent);
    if (!locked) return null;
    const { under_lock: read, ...row } = locked;
    return { ...row, ...read } as unknown as Locked<T['$inferSelect']> & More;
  };
}
