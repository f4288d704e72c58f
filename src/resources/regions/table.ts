import { integer, pgTable, text } from 'drizzle-orm/pg-core';
import { instant } from '../../platform/columns.ts';

/** That a region exists, and since when. What it offers stands in the regions file. */
export const regions = pgTable('regions', {
  id: integer('id').primaryKey(),
  name: text('name').notNull(),
  createdAt: instant('created_at').notNull(),
});
