import { sql } from 'drizzle-orm';
import { bigint, index, integer, jsonb, pgTable, text } from 'drizzle-orm/pg-core';
import { instant } from '../platform/columns.ts';
import type { Change, Origin } from './audit.ts';

/** One row for each mutation, written in its transaction. */
export const auditEntries = pgTable(
  'audit_entries',
  {
    id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    at: instant('at').notNull(),
    /** The client whose resources were changed; null: only the operator sees the entry. */
    clientId: integer('client_id'),
    projectId: integer('project_id'),
    regionId: integer('region_id'),
    /** Null: a command, or the start of a server. */
    tokenId: integer('token_id'),
    operation: text('operation').notNull(),
    requestId: text('request_id'),
    origin: jsonb('origin').notNull().$type<Origin>(),
    changes: jsonb('changes').notNull().$type<Change[]>(),
  },
  // Entries are inserted in the order of time, so a BRIN index is enough; it adds no cost to a create.
  (t) => [
    index('audit_entries_client').on(t.clientId, t.id),
    index('audit_entries_at').using('brin', t.at),
    // Hashes of tables and ids, for the filters by table and by row. The function is in the migration that adds the index.
    index('audit_entries_keys').using('gin', sql`cloudyard_audit_keys(${t.changes})`),
  ],
);
