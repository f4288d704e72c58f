import { boolean, integer, pgTable, text } from 'drizzle-orm/pg-core';
import { instant } from '../../platform/columns.ts';

/** The owners of projects, quotas and tokens. The first start creates the operator's client. */
export const clients = pgTable('clients', {
  id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
  name: text('name').notNull().unique(),
  operator: boolean('operator').notNull(),
  /** The receivers of notifications. */
  emails: text('emails').array().notNull().default([]),
  /** Its share of contended resources, relative to other clients; also multiplies its usage limits. */
  weight: integer('weight').notNull().default(1),
  createdAt: instant('created_at').notNull(),
});

/** The client of a row. */
export const clientId = () =>
  integer('client_id')
    .notNull()
    .references(() => clients.id);
