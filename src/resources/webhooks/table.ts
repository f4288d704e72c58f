import { customType, index, integer, pgTable, text, timestamp, uuid } from 'drizzle-orm/pg-core';
import { clients } from '../clients/table.ts';

const bytes = customType<{ data: Buffer }>({ dataType: () => 'bytea' });

/** Where a client's notifications are posted to. */
export const webhooks = pgTable(
  'webhooks',
  {
    id: uuid('id').primaryKey(),
    clientId: integer('client_id')
      .notNull()
      .references(() => clients.id),
    url: text('url').notNull(),
    /** Encrypted for `webhook:<id>` (platform/encryption.ts). */
    secret: bytes('secret').notNull(),
    createdAt: timestamp('created_at', { withTimezone: true }).notNull(),
  },
  (t) => [index('webhooks_client').on(t.clientId, t.createdAt, t.id)],
);
