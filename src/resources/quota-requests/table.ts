import { sql } from 'drizzle-orm';
import { index, integer, json, pgTable, text } from 'drizzle-orm/pg-core';
import { instant } from '../../platform/columns.ts';
import { clientId } from '../clients/table.ts';
import type { QuotaRequestStatus, RequestedLimits } from './schema.ts';

/** Limits that clients asked for, and the decisions of the operator. */
export const quotaRequests = pgTable(
  'quota_requests',
  {
    id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
    clientId: clientId(),
    description: text('description').notNull(),
    /** As in the request; `json` keeps the order of its fields. */
    requestedLimits: json('requested_limits').notNull().$type<RequestedLimits>(),
    status: text('status').notNull().$type<QuotaRequestStatus>(),
    /** Why the operator declined it, or a remark on the approval. */
    reason: text('reason'),
    createdAt: instant('created_at').notNull(),
    /** When it was decided. */
    updatedAt: instant('updated_at'),
  },
  (t) => [
    index('quota_requests_client').on(t.clientId, t.id),
    index('quota_requests_open').on(t.clientId).where(sql`${t.status} = 'in progress'`),
  ],
);
