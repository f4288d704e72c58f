import { sql } from 'drizzle-orm';
import { boolean, integer, pgTable, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { instant } from '../../platform/columns.ts';
import { clientId } from '../clients/table.ts';

/** Deleted projects stay as rows (`include_deleted`); their names can be used again. */
export const projects = pgTable(
  'projects',
  {
    id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
    clientId: clientId(),
    name: text('name').notNull(),
    description: text('description'),
    isDefault: boolean('is_default').notNull(),
    createdAt: instant('created_at').notNull(),
    deletedAt: instant('deleted_at'),
  },
  (t) => [
    uniqueIndex('projects_name').on(t.clientId, t.name).where(sql`${t.deletedAt} is null`),
    uniqueIndex('projects_default').on(t.clientId).where(sql`${t.isDefault} and ${t.deletedAt} is null`),
  ],
);

/** Columns of a row that belongs to a project in a region. Its client is that of the project. */
export const ofProject = {
  projectId: integer('project_id')
    .notNull()
    .references(() => projects.id),
  regionId: integer('region_id').notNull(),
  name: text('name').notNull(),
};
