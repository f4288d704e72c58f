/**
 * Reads for responses: single rows by id, and pages of rows, as plain SQL that is built once from the columns of a table.
 * Drizzle would build each query and map each row, which takes longer than PostgreSQL does. Only the filters and the order of
 * a page are built for a request.
 */
import { and, asc, Column, eq, getTableColumns, getTableName, is, sql, type SQL } from 'drizzle-orm';
import { type PgColumn, PgDialect, type PgTable } from 'drizzle-orm/pg-core';
import { batchedRead, type Key, preparedByKeys } from '../platform/batched-read.ts';
import { type Db, prepared, preparedValue, runStatement, type Tx } from '../platform/db.ts';
import { nameStatement, type Statement } from '../platform/prepared-query.ts';
import { rowCounts } from '../platform/table.ts';

/** The project and region of a row or a request. */
export interface ProjectRegion {
  projectId: number;
  regionId: number;
}

export type TableWithId = PgTable & { id: PgColumn };
/** A table whose rows belong to a project and region. */
export type ScopedTable = TableWithId & { projectId: PgColumn; regionId: PgColumn };

/** SQL: the type of the ids of a table, as a parameter. */
export const typeOfId = (table: TableWithId) => table.id.getSQLType().replace('serial', 'integer');

type Id = string | number;
type Columns = Record<string, Column | SQL>;

export function inScope(table: ScopedTable, { projectId, regionId }: ProjectRegion): SQL {
  return and(eq(table.projectId, projectId), eq(table.regionId, regionId))!;
}

const dialect = new PgDialect();

/** The text of SQL without parameters, for prepared statements. Columns in it are qualified. */
export function textOf(query: SQL): string {
  const { sql: text, params } = dialect.sqlToQuery(query);
  if (params.length > 0) throw new Error(`not a constant statement: ${text}`);
  return text;
}

/**
 * Columns as a select list, each under its field's name: what prepared statements return is a row. Every start makes one for
 * each read of each table, for which Drizzle's builder takes ten times as long.
 */
function selectList(columns: Columns): string {
  const nameOf = (column: Column | SQL) =>
    is(column, Column)
      ? `${dialect.escapeName(getTableName(column.table))}.${dialect.escapeName(column.name)}`
      : textOf(column);
  return Object.entries(columns)
    .map(([field, column]) => `${nameOf(column)} as ${dialect.escapeName(field)}`)
    .join(', ');
}

/** What a read returns of the rows of a table. */
interface Selection {
  /** Columns and expressions, by field; default: the columns of the table. */
  columns?: Columns;
  /** SQL after the name of the table. */
  joins?: SQL;
  /** SQL that a row must meet to be found, such as `deleted_at is null`. */
  condition?: SQL;
}

/** SQL: selects rows of a table, without a condition. */
export function selectOf(table: PgTable, { columns = getTableColumns(table), joins = sql`` }: Selection = {}): string {
  return `select ${selectList(columns)} ${textOf(sql`from ${table} ${joins}`)}`;
}

/** Reads a row by its id, in one statement with those of other requests. `name`: of the statement. */
export function rowById<Row extends { id: Id }>(
  table: TableWithId,
  selection: Selection = {},
  name = `${getTableName(table)}_row`,
): (on: Db | Tx, id: Id) => Promise<Row | null> {
  const condition = selection.condition ? ` and ${textOf(selection.condition)}` : '';
  const select = selectOf(table, selection);
  const text = (ids: string) => `${select} where ${getTableName(table)}.id in (${ids})${condition}`;
  const read = batchedRead<Row>(preparedByKeys(name, text), (row) => [row.id]);
  // PostgreSQL writes ids in lower case.
  return (on, id) => read(on, `${id}`.toLowerCase());
}

/** The same for the rows of a project and region, which are among the columns. */
export function viewOf<View extends ProjectRegion & { id: Id }>(
  table: TableWithId,
  selection: Selection = {},
  name = `${getTableName(table)}_view`,
): (on: Db | Tx, scope: ProjectRegion, id: Id) => Promise<View | null> {
  const read = rowById<View>(table, selection, name);
  return (on, { projectId, regionId }, id) =>
    read(on, id).then((view) => (view?.projectId === projectId && view.regionId === regionId ? view : null));
}

/** Reads a row of a project and region by the column `key`, in one statement with those of other requests. */
export function viewByKey<View extends ProjectRegion>(
  table: ScopedTable,
  key: PgColumn,
  selection: Selection = {},
): (on: Db | Tx, scope: ProjectRegion, value: string | number) => Promise<View | null> {
  const name = getTableName(table);
  const condition = selection.condition ? ` and ${textOf(selection.condition)}` : '';
  const text = (keys: string) =>
    `${selectOf(table, selection)} where (${name}.project_id, ${name}.region_id, ${name}.${key.name}) in (${keys})${condition}`;
  const [field] = Object.entries(getTableColumns(table as PgTable)).find(([, column]) => column === key)!;
  const keyOf = (view: View): Key => [view.projectId, view.regionId, view[field as keyof View] as string | number];
  const read = batchedRead<View>(preparedByKeys(`${name}_find_by_keys`, text, 3), keyOf);
  return (on, { projectId, regionId }, value) => read(on, projectId, regionId, value);
}

/**
 * SQL: any element of the array parameter. The subselect hides its length from the planner, which would otherwise plan each call
 * of a prepared statement again.
 */
export const anyOf = (parameter: string, type: string): string => `any((select ${parameter}::${type}[])::${type}[])`;

/** Reads the rows with these ids, in any scope and order. */
export function rowsByIds<Row>(table: TableWithId, selection: Selection = {}, name = `${getTableName(table)}_rows`) {
  return prepared<Row & object, [ids: Id[]], Db | Tx>(
    name,
    `${selectOf(table, selection)} where ${getTableName(table)}.id = ${anyOf('$1', typeOfId(table))}`,
  );
}

/** The first row of a query; null without one. */
export async function firstRow<Row>(query: PromiseLike<Row[]>): Promise<Row | null> {
  return (await query)[0] ?? null;
}

/** A constant order is turned into SQL once. */
type Order = (SQL | PgColumn)[];

/** SQL: a constant order as text, for prepared statements. */
export const orderText = (order: Order): string => textOf(sql.join(order, sql`, `));

/** The rows that a request wants of a list. */
export interface PageQuery {
  limit?: number;
  offset?: number;
}

/** A page of a list, and how many rows there are on all pages. */
export interface Found<Row> {
  count: number;
  rows: Row[];
}

interface ListOptions {
  /** The resource whose rows are counted as they come and go; a list without filters then costs the same at any length. */
  counted?: string;
  /** The order of lists that have no other; default: oldest first. */
  order?: Order;
}

/** Reads pages of the rows of a project and region, that meet all `filters`; undefined filters are ignored. */
export function pagesOf<Row>(table: ScopedTable, { counted, order, ...selection }: Selection & ListOptions = {}) {
  const { condition } = selection;
  const ownOrder = order ?? oldestFirst(table as unknown as Parameters<typeof oldestFirst>[0]);
  const read = pageReader<Row>(table, selection);
  const readFirst = firstPageReader<Row>(table, { ...selection, counted });
  return async (
    db: Db,
    scope: ProjectRegion,
    page: PageQuery,
    filters: (SQL | undefined)[] = [],
    order: Order = ownOrder,
  ): Promise<Found<Row>> => {
    const isFiltered = filters.some((filter) => filter !== undefined);
    const where = and(inScope(table, scope), condition, ...filters);
    const count = counted !== undefined && !isFiltered ? () => readCountOf(db, counted, scope) : undefined;
    const { limit = defaultLimit, offset = 0 } = page;
    if (isFiltered || offset > 0 || !frequentLimits.has(limit)) {
      return read(db, { where, order, page, count, isPrepared: !isFiltered });
    }
    const { total, rows } = await readFirst(db, scope, order, limit);
    return { count: rows.length < limit ? rows.length : total, rows };
  };
}

/**
 * The orders of a list, by the names that requests use. Rows with the same value are in the order of their ids.
 * `nulls`: which SQL to add to the first column; it prevents the use of an index.
 */
export function ordersOf<Field extends string>(id: PgColumn, fields: Record<Field, SQL | PgColumn>, nulls = sql``) {
  const orders = Object.entries<SQL | PgColumn>(fields).flatMap(([field, column]) => [
    [`${field}.asc`, [sql`${column} asc${nulls}`, sql`${id} asc`]],
    [`${field}.desc`, [sql`${column} desc${nulls}`, sql`${id} desc`]],
  ]);
  return Object.fromEntries(orders) as Record<`${Field}.asc` | `${Field}.desc`, SQL[]>;
}

export const oldestFirst = ({ createdAt, id }: { createdAt: PgColumn; id: PgColumn }) => [asc(createdAt), asc(id)];

const defaultLimit = 1000;
/** Each one is a statement of its own, so the list is short. */
const frequentLimits = new Set([10, 20, 50, 100, defaultLimit]);

/**
 * Reads first pages without filters, the most frequent ones, with the count in the same statement. PostgreSQL plans such a
 * statement once for each connection; planning takes longer than reading 100 rows. It would plan each call if the plan for
 * the values of a call seemed cheaper than the general one, so the limit is a constant, and the values of the scope are
 * subselects, which the planner does not look into.
 */
function firstPageReader<Row>(
  table: ScopedTable,
  { counted, condition, ...selection }: Selection & { counted: string | undefined },
) {
  const name = getTableName(table);
  const [project, region] = ['(select $1::int)', '(select $2::int)'];
  const where = `where ${name}.project_id = ${project} and ${name}.region_id = ${region}
    ${condition ? `and ${textOf(condition)}` : ''}`;
  const total =
    counted === undefined
      ? `(select count(*) from ${name} ${where})`
      : `(select count from ${getTableName(rowCounts)}
          where resource = '${counted}' and project_id = ${project} and region_id = ${region})`;
  const columns = { ...(selection.columns ?? getTableColumns(table)), pageTotal: sql.raw(total) };
  const select = `${selectOf(table, { ...selection, columns })} ${where}`;
  const texts = new WeakMap<Order, string>();
  return async (db: Db, { projectId, regionId }: ProjectRegion, order: Order, limit: number) => {
    let ordered = texts.get(order);
    if (ordered === undefined) texts.set(order, (ordered = `${select} order by ${orderText(order)}`));
    const text = `${ordered} limit ${limit}`;
    const rows = await runStatement(db, statementOf(text), [projectId, regionId]);
    return { total: rows[0]?.['pageTotal'] as number, rows: rows as Row[] };
  };
}

const readCount = preparedValue<number | undefined>(
  'row_counts_read',
  `select count from ${getTableName(rowCounts)} where resource = $1 and project_id = $2 and region_id = $3`,
);

async function readCountOf(db: Db, resource: string, { projectId, regionId }: ProjectRegion): Promise<number> {
  return (await readCount(db, resource, projectId, regionId)) ?? 0;
}

interface PageRequest {
  where: SQL | undefined;
  order: Order;
  page: PageQuery;
  /** Counts the rows; default: with a statement. */
  count?: (() => Promise<number>) | undefined;
  /** Whether few texts of `where` and `order` exist, so that the statement is prepared. */
  isPrepared?: boolean;
}

/**
 * Reads pages of rows that a condition selects. A page that is not full is the last one, so only others need a count.
 *
 * The rows of the page are selected before the joins and the subselects of the columns, which PostgreSQL would otherwise compute
 * for the rows of all pages before it, too. So a subselect of the same table would read the rows of the page only.
 */
export function pageReader<Row>(table: PgTable, selection: Selection = {}) {
  const name = getTableName(table);
  const select = selectOf(table, selection);
  return async (db: Db, { where, order, page, count, isPrepared }: PageRequest): Promise<Found<Row>> => {
    const { limit = defaultLimit, offset = 0 } = page;
    const ordered = sql`order by ${sql.join(order, sql`, `)}`;
    const rest = sql`where ${where ?? sql`true`} ${ordered} limit ${limit} offset ${offset}`;
    const query = dialect.sqlToQuery(rest);
    const text = `with ${name} as (select * from ${name} ${query.sql}) ${select} ${textOf(ordered)}`;
    const rows = (await runStatement(db, isPrepared ? statementOf(text) : { text }, query.params)) as Row[];
    const isLast = rows.length < limit && (rows.length > 0 || offset === 0);
    return { count: isLast ? offset + rows.length : await (count?.() ?? db.$count(table, where)), rows };
  };
}

/** The prepared pages, by text. */
const statements = new Map<string, Statement>();

function statementOf(text: string): Statement {
  const statement = statements.get(text) ?? nameStatement(`page_${statements.size}`, text);
  statements.set(text, statement);
  return statement;
}
