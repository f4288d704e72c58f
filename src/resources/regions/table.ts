import { integer, pgTable, text } from 'drizzle-orm/pg-core';
import { instant } from '../../platform/columns.ts';

/** The regions and when each was first seen. Their features are in the regions file. */
export const regions = pgTable('regions', {
  id: integer('id').primaryKey(),
  name: text('name').notNull(),
  createdAt: instant('created_at').notNull(),
});
