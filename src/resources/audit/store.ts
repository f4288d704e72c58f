/** SQL of the audit log: reads only. */
import { and, desc, getTableColumns, gte, lt, lte, or, sql, type SQL } from 'drizzle-orm';
import { auditEntries } from '../../audit/table.ts';
import type { Db } from '../../platform/db.ts';
import type { SizedRow } from '../../platform/large-rows.ts';
import * as kit from '../store-kit.ts';
import { tokens } from '../tokens/table.ts';
import type { ListAudit } from './schema.ts';

export type EntryRow = typeof auditEntries.$inferSelect & { tokenName: string | null };

export interface EntryFilter extends Omit<ListAudit, 'from_timestamp' | 'to_timestamp' | 'row_id' | 'row_name'> {
  /** The rows whose changes are listed; undefined: all. */
  rowIds: string[] | undefined;
  /** The entries visible to the caller; null: all. */
  visible: kit.Visible | null;
  from: Date | undefined;
  to: Date | undefined;
}

/** Newest first; one more than the limit when there are more. Entries may be large, so they are read separately. */
export async function list(db: Db, filter: EntryFilter, limit: number): Promise<SizedRow<number>[]> {
  const e = auditEntries;
  const { table, rowIds } = filter;
  return db
    .select({ id: e.id, bytes: sql<number>`pg_column_size(${e.changes})` })
    .from(e)
    .where(
      and(
        inScope(filter),
        kit.equals(e.tokenId, filter.token_id),
        kit.equals(e.operation, filter.operation),
        kit.equals(e.requestId, filter.request_id),
        filter.from && gte(e.at, filter.from),
        filter.to && lte(e.at, filter.to),
        filter.before === undefined ? undefined : lt(e.id, filter.before),
        // Not in the search, so that it is checked until the page is full: a row may have many entries.
        rowIds && and(isAmong(hasKeys(table, rowIds)), hasChange(table, rowIds)),
        rowIds || table === undefined ? undefined : changedRows(table, undefined),
      ),
    )
    .orderBy(desc(e.id))
    .limit(limit + 1);
}

/** What the caller may see, in the client, project and region of the filter. */
function inScope({ visible, ...filter }: Pick<EntryFilter, 'visible' | 'client_id' | 'project_id' | 'region_id'>) {
  const e = auditEntries;
  return and(
    kit.isVisible(e, visible),
    kit.equals(e.clientId, filter.client_id),
    kit.equals(e.projectId, filter.project_id),
    kit.equals(e.regionId, filter.region_id),
  );
}

/**
 * Rows that had this name in a recorded change of it, such as their creation; the latest ones of many. Entries may be large,
 * so PostgreSQL reads the ids from them.
 */
export async function findRowIds(db: Db, filter: EntryFilter & { table: string; name: string }): Promise<string[]> {
  const { table, name } = filter;
  const { changes, id } = auditEntries;
  const named = ['before', 'after'].map(
    (state) => sql`${changes} @> ${JSON.stringify([{ table, [state]: { name } }])}`,
  );
  const entries = db
    .select({ changes })
    .from(auditEntries)
    .where(and(inScope(filter), changedRows(table, undefined), or(...named)))
    .orderBy(desc(id))
    .limit(100);
  const { rows } = await db.execute<{ id: string }>(
    sql`select distinct change ->> 'id' as id from ${entries} as entries, jsonb_array_elements(entries.changes) as change
      where change ->> 'table' = ${table} and ${name} in (change -> 'before' ->> 'name', change -> 'after' ->> 'name')`,
  );
  return rows.map((row) => row.id);
}

export const findEntries = kit.rowsByIds<EntryRow>(auditEntries, {
  columns: { ...getTableColumns(auditEntries), tokenName: tokens.name },
  joins: sql`left join ${tokens} on ${tokens.id} = ${auditEntries.tokenId}`,
});

/**
 * Entries that changed a table, one of some rows, or one of some rows of a table. The index has hashes of tables and ids; the
 * last condition decides. With rows, use it in `isAmong`.
 */
export function changedRows(table: string | undefined, ids: readonly string[] | undefined): SQL {
  return and(hasKeys(table, ids), hasChange(table, ids))!;
}

/** The condition that the index answers. Entries whose hashes collide match, too. */
function hasKeys(table: string | undefined, ids: readonly string[] | undefined): SQL {
  const keys = sql`cloudyard_audit_keys(${auditEntries.changes})`;
  return and(
    table === undefined ? undefined : sql`${keys} @> array[hashtextextended(${table}, 0)]`,
    ids &&
      sql`${keys} && array(select distinct hashtextextended('/' || key, 0) from unnest(${sql.param(ids)}::text[]) as key)`,
  )!;
}

function hasChange(table: string | undefined, ids: readonly string[] | undefined): SQL {
  return sql`exists (select from jsonb_array_elements(${auditEntries.changes}) as change where ${and(
    table === undefined ? undefined : sql`change ->> 'table' = ${table}`,
    ids && sql`change ->> 'id' = any(${sql.param(ids)}::text[])`,
  )})`;
}

/**
 * The entries that one of the searches finds. Each reads the index once, whatever its number of rows. Otherwise PostgreSQL may
 * scan the log and check the condition for each entry: with 900 ids, 60,000 entries took more than ten minutes (measured). An
 * array, because PostgreSQL may compare each entry of the log with each one found if it takes few for a join (measured).
 */
export function isAmong(...searches: SQL[]): SQL {
  const { id } = auditEntries;
  const found = searches.map((search) => sql`(select ${id} from ${auditEntries} where ${search} offset 0)`);
  return sql`${id} = any(array(${sql.join(found, sql` union all `)}))`;
}
