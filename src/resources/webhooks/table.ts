import { index, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { bytes, instant } from '../../platform/columns.ts';
import { clientId } from '../clients/table.ts';

/** URLs that receive a client's notifications. */
export const webhooks = pgTable(
  'webhooks',
  {
    id: uuid('id').primaryKey(),
    clientId: clientId(),
    url: text('url').notNull(),
    /** Encrypted for `webhook:<id>` (platform/encryption.ts). */
    secret: bytes('secret').notNull(),
    createdAt: instant('created_at').notNull(),
  },
  (t) => [index('webhooks_client').on(t.clientId, t.createdAt, t.id)],
);
