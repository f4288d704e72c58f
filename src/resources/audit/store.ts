/** SQL of the audit log: reads only. */
import { and, desc, eq, gte, inArray, lt, or, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import { auditEntries } from '../../audit/table.ts';
import type { Db } from '../../platform/db.ts';
import type { SizedRow } from '../../platform/large-rows.ts';
import { tokens } from '../tokens/table.ts';
import type { ListAudit } from './schema.ts';

export type EntryRow = typeof auditEntries.$inferSelect & { tokenName: string | null };

export interface Wanted extends Omit<ListAudit, 'from_timestamp' | 'to_timestamp'> {
  /** What the asking token sees; null: everything. */
  visible: { clientId: number; projectIds: number[] | null } | null;
  from: Date | undefined;
  to: Date | undefined;
}

/** Newest first: one more than asked for where there are more. Entries may be large, and are read apart. */
export async function list(db: Db, wanted: Wanted): Promise<SizedRow<number>[]> {
  const e = auditEntries;
  const { visible, table, row_id } = wanted;
  return db
    .select({ id: e.id, bytes: sql<number>`pg_column_size(${e.changes})` })
    .from(e)
    .where(
      and(
        visible ? eq(e.clientId, visible.clientId) : undefined,
        visible?.projectIds ? inArray(e.projectId, visible.projectIds) : undefined,
        given(wanted.client_id, (id) => eq(e.clientId, id)),
        given(wanted.project_id, (id) => eq(e.projectId, id)),
        given(wanted.region_id, (id) => eq(e.regionId, id)),
        given(wanted.token_id, (id) => eq(e.tokenId, id)),
        given(wanted.operation, (name) => eq(e.operation, name)),
        given(wanted.request_id, (id) => eq(e.requestId, id)),
        given(wanted.from, (date) => gte(e.at, date)),
        given(wanted.to, (date) => lt(e.at, date)),
        given(wanted.before, (id) => lt(e.id, id)),
        table === undefined && row_id === undefined ? undefined : changed(table, row_id),
      ),
    )
    .orderBy(desc(e.id))
    .limit((wanted.limit ?? 100) + 1);
}

export async function entries(db: Db, ids: number[]): Promise<EntryRow[]> {
  const rows = await db
    .select({ entry: auditEntries, tokenName: tokens.name })
    .from(auditEntries)
    .leftJoin(tokens, eq(tokens.id, auditEntries.tokenId))
    .where(inArray(auditEntries.id, ids));
  return rows.map(({ entry, tokenName }) => ({ ...entry, tokenName }));
}

function given<T>(value: T | undefined, condition: (value: T) => SQL): SQL | undefined {
  return value === undefined ? undefined : condition(value);
}

/** Ids are numbers in some tables, and text in others. */
function changed(table: string | undefined, id: string | undefined): SQL | undefined {
  const ids = id === undefined ? [undefined] : [id, ...(/^\d{1,15}$/.test(id) ? [Number(id)] : [])];
  return or(...ids.map((id) => sql`${auditEntries.changes} @> ${JSON.stringify([{ table, id }])}::jsonb`));
}
