/** Tables that belong to no resource. */
import { sql } from 'drizzle-orm';
import { bigint, boolean, check, integer, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';

/**
 * Counters that grow when something changes: reference data (tokens, projects), so that every server clears its caches
 * (reference-cache.ts); API keys; and the published states of a region of several hosts (hosts/store.ts).
 */
export const revisions = pgTable('revisions', {
  name: text('name').primaryKey(),
  value: bigint('value', { mode: 'number' }).notNull(),
});

/**
 * The number of rows of a resource in a project and region, so that the count of a list does not depend on its length. The
 * statements that insert and delete those rows update it.
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

/** Development mode: the offset of the shared clock from real time. One row, or none. */
export const developmentClock = pgTable(
  'development_clock',
  {
    one: boolean('one').primaryKey().default(true),
    offsetMs: bigint('offset_ms', { mode: 'number' }).notNull(),
  },
  (t) => [check('development_clock_is_one', sql`${t.one}`)],
);
