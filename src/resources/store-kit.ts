/**
 * What every store needs: rows of a project and region (read-kit.ts), locks (lock-kit.ts), single rows by id, inserts,
 * counts, pending rows. docs/adding-a-resource.md has a table of the reads.
 *
 * Statements on single rows are prepared and built from the table's columns, so a new column needs no change here or in
 * a store. Inserts, updates and deletes are deferred, so their errors are thrown by a later statement (`DeferredWrite`).
 * Inserts take whole rows as objects: a missing or misspelled column is a type error. Where a column is raw SQL it is
 * qualified, so a fragment means the same inside a subselect.
 */
import { and, type Column, eq, getTableColumns, getTableName, inArray, type SQL, sql, type Table } from 'drizzle-orm';
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import type { Actor } from '../authz/actor.ts';
import { notFound, type Uses } from '../errors/catalogue.ts';
import {
  columnsOf,
  type Db,
  deferred,
  type DeferredWrite,
  prepared,
  preparedColumn,
  preparedRow,
  type Tx,
} from '../platform/db.ts';
import type { Ciphertexts } from '../platform/encryption.ts';
import type { UsageOfRows } from '../quota/audit.ts';
import type { Kind } from '../quota/kinds.ts';
import type { Placed } from '../tasks/tasks.ts';
import {
  type ProjectRegion,
  type ScopedTable,
  selectOf,
  type TableWithId,
  typeOfId,
  viewByKey,
  viewOf,
} from './read-kit.ts';

export * from './lock-kit.ts';
export * from './read-kit.ts';
export * from './row-limits.ts';

/** A table whose rows a reconciler brings to the host of their region. */
type ReconciledTable = ScopedTable & {
  clientId: PgColumn;
  generation: PgColumn;
  observedGeneration: PgColumn;
};

/** The columns of a new row that no request decides. */
export const newReconciledRow = { generation: 1, observedGeneration: 0, deletedAt: null } as const;

type Row<T extends Table> = T['$inferSelect'];

/** SQL: rows of a table as a JSON array of objects with these columns, by default oldest first. Times become texts. */
export function jsonRows(
  table: PgTable,
  columns: Record<string, Column>,
  condition: string,
  order = ['r.created_at', 'r.id'],
): SQL {
  const fields = Object.entries(columns).map(([field, column]) => `'${field}', r."${column.name}"`);
  return sql.raw(`(select coalesce(json_agg(json_build_object(${fields.join(', ')}) order by ${order.join(', ')}), '[]')
    from ${getTableName(table)} r where r.${condition})`);
}

/** Rows of a table from JSON, in which times are texts. */
export function withDates<R extends object>(table: PgTable, rows: R[]): R[] {
  const columns = Object.entries<Column>(getTableColumns(table));
  const times = columns.filter(([, { dataType }]) => dataType === 'date').map(([field]) => field as keyof R);
  return rows.map((row) => {
    const dated = times.map((field) => [field, row[field] && new Date(row[field] as string)]);
    return { ...row, ...Object.fromEntries(dated) };
  });
}

interface RowsOptions<Field extends string> {
  /** The columns to read; default: all. */
  columns?: Record<Field, Column>;
  /** The column by which clients name a row; default: id. */
  key?: PgColumn;
  /** SQL that a row in a scope must meet, such as `deleted_at is null`. */
  condition?: string;
}

/**
 * Reads and writes of single rows. Services use `find` and `lock`, which need the scope of the request; `lockById` is for
 * reconcilers and for ids that the caller has already checked. Every change of a row holds its lock from reading to commit.
 * `lockAllowingReferences` lets other transactions insert rows that refer to it.
 */
export function singleRows<T extends ScopedTable, Field extends keyof Row<T> & string = keyof Row<T> & string>(
  table: T,
  { columns, key = table.id, condition = 'true' }: RowsOptions<Field> = {},
) {
  type Selected = Pick<Row<T>, Field>;
  type Id = Row<T>['id'];
  const name = getTableName(table);
  const select = selectOf(table, { columns });
  const locking = (statement: string, lock: string) => {
    const inScope = `${key.name} = $1 and project_id = $2 and region_id = $3`;
    const read = preparedRow<Selected>(statement, `${select} where ${inScope} and ${condition} ${lock}`);
    return (tx: Tx, { projectId, regionId }: ProjectRegion, value: string | number) =>
      read(tx, value, projectId, regionId);
  };
  const selection = { columns, condition: sql.raw(condition) };
  type View = Selected & ProjectRegion & { id: string | number };
  return {
    find:
      key === table.id ? viewOf<View>(table, selection, `${name}_find_by_ids`) : viewByKey<View>(table, key, selection),
    lock: locking(`${name}_lock`, 'for update'),
    lockAllowingReferences: locking(`${name}_lock_allowing_references`, 'for no key update'),
    lockById: preparedRow<Selected, [id: Id], Tx>(`${name}_lock_by_id`, `${select} where id = $1 for update`),
    update: updateRow<T>(table),
    remove: deferred<[id: Id]>(`${name}_remove`, {
      parameters: typeOfId(table),
      body: `delete from ${name} where id = $1;`,
    }),
  };
}

/** Thrown by the commit: the row that a reconcile removes has changed since it was read, or is gone. */
export class RowChanged extends Error {}

const rowChanged = 'CY003';

interface ReconciledRowsOptions {
  /** SQL: rows that a comparison with the host checks. */
  condition: string;
  /** SQL: whether the host should have such a row; default: it should. */
  onHost?: string;
  /** Count the removed rows as those of this resource (see `countRows`). */
  counted?: string;
}

/**
 * The rows that a reconciler serves. `remove` removes a row if it still has the generation that was read. `findPending`
 * returns rows whose desired state has not been observed on the host; `findExpected`, the rows that a sweep compares with the
 * host, and whether the host should have each; `findKnown`, those of the ids that have a row, in any region and state.
 */
export function reconciledRows<T extends ReconciledTable>(
  table: T,
  { condition, onHost = 'true', counted }: ReconciledRowsOptions,
) {
  const name = getTableName(table);
  const placed = 'id, region_id as "regionId", client_id as "clientId"';
  const removeRow = deferred(`${name}_remove_observed`, {
    parameters: 'uuid, bigint',
    body: `delete from ${name} where id = $1 and generation = $2;
      if not found then raise exception using errcode = '${rowChanged}', message = 'the row has changed'; end if;`,
    errors: { [rowChanged]: () => new RowChanged() },
  });
  const remove: DeferredWrite<[row: ProjectRegion & { id: string; generation: number }]> = async (tx, row) => {
    await removeRow(tx, row.id, row.generation);
    if (counted) await countRows(tx, counted, [row], -1);
  };
  const known = preparedColumn<string>(`${name}_known`, `select id from ${name} where id = any($1::uuid[])`);
  return {
    remove,
    findPending: prepared<Placed, [regionIds: number[]], Db>(
      `${name}_pending`,
      `select ${placed} from ${name}
       where region_id = any($1::int[]) and observed_generation < generation limit 1000`,
    ),
    findExpected: prepared<Placed & { onHost: boolean }, [regionIds: number[]], Db>(
      `${name}_expected`,
      `select ${placed}, ${onHost} as "onHost" from ${name}
       where region_id = any($1::int[]) and ${condition}`,
    ),
    findKnown: async (db: Db, ids: string[]): Promise<Set<string>> => new Set(await known(db, ids)),
  };
}

/** Updates one row: the columns that `changes` has. */
export function updateRow<T extends TableWithId>(
  table: T,
): DeferredWrite<[id: Row<T>['id'], changes: Partial<Row<T>>]> {
  const update = deferred(`${getTableName(table)}_update`, {
    parameters: `${typeOfId(table)}, text[], json`,
    body: updateSql(table),
  });
  return async (tx, id, changes) => {
    const [values] = toJson(table, [changes]);
    await update(tx, id, Object.keys(values!), JSON.stringify(values));
  };
}

/** PL/pgSQL: writes the columns `$2` of the JSON `$3` into the row `$1`. The others keep their stored form. */
function updateSql(table: TableWithId): string {
  const names = Object.values<Column>(getTableColumns(table as PgTable)).map((column) => column.name);
  const changes = names
    .filter((name) => name !== 'id')
    .map((name) => `"${name}" = case when '${name}' = any($2) then c."${name}" else t."${name}" end`);
  const name = getTableName(table);
  return `update ${name} t set ${changes.join(',\n  ')}
    from json_populate_record(null::${name}, $3) c where t.id = $1;`;
}

/** Rows, or parts of rows, with the names and values of columns that PostgreSQL reads from JSON. */
export function toJson(table: PgTable, rows: object[]): Record<string, unknown>[] {
  const columns = Object.entries<Column>(getTableColumns(table));
  return rows.map((row) => {
    const json: Record<string, unknown> = {};
    for (const [field, column] of columns) {
      const value = (row as Record<string, unknown>)[field];
      if (value !== undefined) json[column.name] = Buffer.isBuffer(value) ? `\\x${value.toString('hex')}` : value;
    }
    return json;
  });
}

interface InsertOptions {
  /** Count the rows as those of this resource (see `countRows`). */
  counted?: string;
  /** SQL after `on conflict`. */
  onConflict?: string;
}

/**
 * Inserts rows, as one JSON parameter: thousands of parameters take longer to write than to insert. Not `jsonb`,
 * which would reorder the keys in columns of type `json`.
 */
export function insertRows<T extends PgTable>(
  table: T,
  { counted, onConflict }: InsertOptions = {},
): DeferredWrite<[rows: Row<T>[]]> {
  const columns = Object.values<Column>(getTableColumns(table as PgTable)).map((column) => `"${column.name}"`);
  const name = getTableName(table);
  const insert = deferred(`${name}_insert`, {
    parameters: 'json',
    body: `insert into ${name} (${columns.join(', ')})
      select ${columns.join(', ')} from json_populate_recordset(null::${name}, $1)
      ${onConflict ? `on conflict ${onConflict}` : ''};`,
  });
  return async (tx, rows) => {
    if (rows.length === 0) return;
    await insert(tx, JSON.stringify(toJson(table, rows)));
    if (counted) await countRows(tx, counted, rows as unknown as ProjectRegion[], 1);
  };
}

/** The same for one row. */
export function insertRow<T extends PgTable>(table: T, options: InsertOptions = {}): DeferredWrite<[row: Row<T>]> {
  const insert = insertRows(table, options);
  return (tx, row) => insert(tx, [row]);
}

/** Deletes rows. */
export function removeRows(table: TableWithId): DeferredWrite<[rows: { id: string }[]]> {
  const name = getTableName(table);
  const remove = deferred<[ids: string[]]>(`${name}_remove_all`, {
    parameters: 'uuid[]',
    body: `delete from ${name} where id = any($1);`,
  });
  return async (tx, rows) => {
    if (rows.length > 0) await remove(tx, ...columnsOf(rows, 'id'));
  };
}

/**
 * A prepared write that gets these fields of all rows as arrays, `$1` to `$n` for `unnest`, and then the other values. Without
 * rows nothing is sent.
 */
export function writeRows<R extends object, More extends unknown[] = []>(
  name: string,
  fields: readonly (keyof R)[],
  text: string,
) {
  const write = prepared(name, text);
  return async (on: Db | Tx, rows: readonly R[], ...more: More): Promise<void> => {
    if (rows.length > 0) await write(on, ...columnsOf(rows, ...fields), ...more);
  };
}

const addCounts = deferred('row_counts_add', {
  parameters: 'text, int[], int[], int',
  hot: true,
  body: `insert into row_counts as c (resource, project_id, region_id, count)
    select $1, project_id, region_id, count(*) * $4 from unnest($2, $3) as places (project_id, region_id)
    group by 2, 3 order by 2, 3
    on conflict (resource, project_id, region_id) do update set count = c.count + excluded.count;`,
});

/** Adds `by` for each of these rows of a resource to the count of its project and region, which is locked until the commit. */
export const countRows = (tx: Tx, resource: string, rows: ProjectRegion[], by: 1 | -1): Promise<void> =>
  addCounts(tx, resource, ...columnsOf(rows, 'projectId', 'regionId'), by);

/** True when a text column contains the text, without patterns. */
export function contains(column: PgColumn, text: string | undefined): SQL | undefined {
  return text ? sql`strpos(${column}, ${text}) > 0` : undefined;
}

/** `eq`, or no condition when the value is not given. */
export function equals(column: PgColumn, value: unknown): SQL | undefined {
  return value === undefined ? undefined : eq(column, value);
}

/** What a caller may see: the rows of its client, in all or some of its projects. */
export type Visible = Pick<Actor, 'clientId' | 'projectIds'>;

/** Null: all rows. */
export function isVisible(
  table: { clientId: PgColumn; projectId: PgColumn },
  visible: Visible | null,
): SQL | undefined {
  if (visible === null) return undefined;
  const { clientId, projectIds } = visible;
  return and(eq(table.clientId, clientId), projectIds ? inArray(table.projectId, projectIds) : undefined);
}

/** True when an integer column has one of the values, also larger ones; no condition when they are not given. */
export function isAnyOf(column: PgColumn, values: number[] | undefined): SQL | undefined {
  return values && sql`${column} = any(${sql.param(values)}::bigint[])`;
}

/** The same for one value. */
export function equalsInteger(column: PgColumn, value: number | undefined): SQL | undefined {
  return isAnyOf(column, value === undefined ? undefined : [value]);
}

/** Byte order, so that a list has the same order in every locale of the database. */
export function bytewise(column: PgColumn): SQL {
  return sql`${column} collate "C"`;
}

/** SQL: one row of `Uses` for the rows that meet the condition, with the first three; no row when there are none. */
export function usesSql(
  kind: string,
  table: string,
  condition: string,
  { shown = 'id', order = 'created_at, id' } = {},
): string {
  return `select '${kind}' as kind, count(*) as count, (array_agg(${shown}::text order by ${order}))[1:3] as ids
    from ${table} where ${condition} having count(*) > 0`;
}

/** The rows of a resource that belong to a project. */
export function usesOfProject(
  kind: string,
  table: PgTable,
  options: { shown?: string; order?: string; live?: true } = {},
) {
  const name = getTableName(table);
  const condition = `project_id = $1${options.live ? ' and deleted_at is null' : ''}`;
  return prepared<Uses, [projectId: number], Tx>(`${name}_uses_of_project`, usesSql(kind, name, condition, options));
}

/**
 * SQL: the quota that the rows of a table use, for `quota audit`. `amounts`: the aggregate of each kind. Without a client
 * column, the client is that of the project.
 */
export function usageOfRows(table: ScopedTable, amounts: Partial<Record<Kind, string>>): UsageOfRows {
  const [client, join] = 'clientId' in table ? ['r', ''] : ['p', 'join projects p on p.id = r.project_id'];
  return Object.entries(amounts)
    .map(
      ([kind, amount]) => `select ${client}.client_id, r.region_id, '${kind}', ${amount}
        from ${getTableName(table)} r ${join} group by 1, 2`,
    )
    .join(' union all ');
}

/** SQLSTATE of an insert into a deleted project. */
const projectDeleted = 'CY004';

/**
 * Keeps the project from being deleted until this transaction ends. A foreign key would not: the row of a deleted project
 * stays. @throws ClientError 404, by a later statement, when it is deleted
 */
export const requireProject = deferred<[projectId: number]>('project_hold', {
  parameters: 'int',
  body: `perform from projects where id = $1 and deleted_at is null for key share;
  if not found then
    raise exception using errcode = '${projectDeleted}', message = 'the project is deleted', detail = $1::text;
  end if;`,
  errors: { [projectDeleted]: (id) => notFound('project', id) },
});

const ciphertextsPerPage = 100;

/** The ciphertexts of a table, for `reencryptAll`. A ciphertext that changes meanwhile is not replaced. */
export function ciphertextsOf(table: PgTable, column: PgColumn): (db: Db) => Ciphertexts {
  const name = getTableName(table);
  const type = getTableColumns(table)['id']!.getSQLType();
  const next = prepared<{ id: string; ciphertext: Buffer }>(
    `${name}_ciphertexts`,
    `select id::text, ${column.name} as ciphertext from ${name} where $1::${type} is null or id > $1
     order by ${name}.id limit ${ciphertextsPerPage}`,
  );
  const replace = prepared(
    `${name}_replace_ciphertext`,
    `update ${name} set ${column.name} = $3 where id = $1 and ${column.name} = $2`,
  );
  return (db) => ({
    after: (id) => next(db, id),
    async replace(id, old, ciphertext) {
      await replace(db, id, old, ciphertext);
    },
  });
}
