import { integer, pgTable, text, timestamp } from 'drizzle-orm/pg-core';

/** That a region exists, and since when. What it offers stands in the regions file. */
export const regions = pgTable('regions', {
  id: integer('id').primaryKey(),
  name: text('name').notNull(),
  createdAt: timestamp('created_at', { withTimezone: true }).notNull(),
});
