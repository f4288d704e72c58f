import { boolean, integer, pgTable, text } from 'drizzle-orm/pg-core';
import { instant } from '../../platform/columns.ts';

/** Who owns projects, quotas and tokens. The first start makes the operator's. */
export const clients = pgTable('clients', {
  id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
  name: text('name').notNull().unique(),
  operator: boolean('operator').notNull(),
  /** Where notifications go. */
  emails: text('emails').array().notNull().default([]),
  /** Its share, relative to other clients, in what they compete for; its limits of use are this many times as high. */
  weight: integer('weight').notNull().default(1),
  createdAt: instant('created_at').notNull(),
});
