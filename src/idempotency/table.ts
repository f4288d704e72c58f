import { index, integer, jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { instant } from '../platform/columns.ts';

/** Responses to repeated requests. A key belongs to the token that sent it: a response may contain a secret. */
export const idempotencyKeys = pgTable(
  'idempotency_keys',
  {
    tokenId: integer('token_id').notNull(),
    key: text('key').notNull(),
    fingerprint: text('fingerprint').notNull(),
    /** The body of the response; null: it has none. */
    answer: jsonb('answer'),
    createdAt: instant('created_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.tokenId, t.key] }), index('idempotency_keys_created').on(t.createdAt)],
);
