/** SQL of quota requests. */
import { and, desc, eq, gte, inArray, lte } from 'drizzle-orm';
import { type Db, preparedRow, type Tx } from '../../platform/db.ts';
import { clients } from '../clients/table.ts';
import * as kit from '../store-kit.ts';
import type { ListQuotaRequests, QuotaRequestStatus } from './schema.ts';
import { quotaRequests } from './table.ts';

export type QuotaRequestRow = typeof quotaRequests.$inferSelect;

interface QuotaRequestFilter extends Omit<ListQuotaRequests, 'created_from' | 'created_to'> {
  /** Null: the requests of all clients. */
  clientId: number | null;
  from: Date | undefined;
  to: Date | undefined;
}

const readPage = kit.pageReader<QuotaRequestRow>(quotaRequests);

/** Newest first. */
export async function list(db: Db, filter: QuotaRequestFilter): Promise<kit.Found<QuotaRequestRow>> {
  const r = quotaRequests;
  const where = and(
    kit.equals(r.clientId, filter.clientId ?? undefined),
    kit.isAnyOf(r.id, filter.request_ids),
    filter.status && inArray(r.status, filter.status as QuotaRequestStatus[]),
    filter.from && gte(r.createdAt, filter.from),
    filter.to && lte(r.createdAt, filter.to),
  );
  return readPage(db, { where, order: [desc(r.id)], page: filter });
}

const readRow = kit.rowById<QuotaRequestRow>(quotaRequests);

/** `clientId`: null for a request of any client. */
export async function find(db: Db, id: number, clientId: number | null): Promise<QuotaRequestRow | null> {
  const row = await readRow(db, id);
  return clientId === null || row?.clientId === clientId ? row : null;
}

/** Of two decisions, the second one waits for the first one. */
export const lock = preparedRow<QuotaRequestRow, [id: number, clientId: number | null], Tx>(
  'quota_requests_lock',
  `${kit.selectOf(quotaRequests)} where id = $1 and ($2::int is null or client_id = $2) for update`,
);

/** A request that nobody decides must not fill the database. */
export const limitOpen = kit.limitRows(clients, {
  of: 'open quota requests',
  most: 100,
  advice: 'delete one first',
  count: `select count(*) from quota_requests where client_id = $1 and status = 'in progress'`,
});

export async function insert(tx: Tx, row: Omit<QuotaRequestRow, 'id'>): Promise<void> {
  await tx.insert(quotaRequests).values(row);
}

export const update = kit.updateRow(quotaRequests);

export async function remove(tx: Tx, id: number): Promise<void> {
  await tx.delete(quotaRequests).where(eq(quotaRequests.id, id));
}
