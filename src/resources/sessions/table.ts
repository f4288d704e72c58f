import { index, integer, pgTable, text } from 'drizzle-orm/pg-core';
import { bytes, instant } from '../../platform/columns.ts';
import { tokens } from '../tokens/table.ts';

export const sessions = pgTable(
  'sessions',
  {
    id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
    /** The part of the cookie before the `$`. */
    keyId: text('key_id').notNull().unique(),
    /** SHA-256 of the part after it. */
    secretHash: bytes('secret_hash').notNull(),
    tokenId: integer('token_id')
      .notNull()
      .references(() => tokens.id, { onDelete: 'cascade' }),
    createdAt: instant('created_at').notNull(),
    /** Written at most once a minute. */
    lastUsedAt: instant('last_used_at').notNull(),
    expiresAt: instant('expires_at').notNull(),
  },
  (table) => [index('sessions_token').on(table.tokenId, table.lastUsedAt)],
);
