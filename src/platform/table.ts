import { sql } from 'drizzle-orm';
import { bigint, boolean, check, integer, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';

/** A number that grows whenever reference data changed (tokens, projects), so that every server drops its copies. */
export const revisions = pgTable('revisions', {
  name: text('name').primaryKey(),
  value: bigint('value', { mode: 'number' }).notNull(),
});

/**
 * How many rows of a resource a project has in a region, so that a list of 20 out of a million costs what a list of 20
 * out of a thousand does. Written by the statements that insert and remove those rows.
 */
export const rowCounts = pgTable(
  'row_counts',
  {
    resource: text('resource').notNull(),
    projectId: integer('project_id').notNull(),
    regionId: integer('region_id').notNull(),
    count: bigint('count', { mode: 'number' }).notNull(),
  },
  (t) => [primaryKey({ columns: [t.resource, t.projectId, t.regionId] })],
);

/** Development mode: how far the clock that all processes share is from the real one. One row, or none. */
export const developmentClock = pgTable(
  'development_clock',
  {
    one: boolean('one').primaryKey().default(true),
    offsetMs: bigint('offset_ms', { mode: 'number' }).notNull(),
  },
  (t) => [check('development_clock_is_one', sql`${t.one}`)],
);
