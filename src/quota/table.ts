import { sql } from 'drizzle-orm';
import { bigint, check, integer, json, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { instant } from '../platform/columns.ts';

/** One row a client, region and kind that was ever used or limited. Region 0 holds the global kinds. */
export const quotaCounters = pgTable(
  'quota_counters',
  {
    clientId: integer('client_id').notNull(),
    regionId: integer('region_id').notNull(),
    kind: text('kind').notNull(),
    usage: bigint('usage', { mode: 'number' }).notNull().default(0),
    /** What an administrator allows; null: the default of the quotas file. */
    limitOverride: bigint('limit_override', { mode: 'number' }),
    /** Since when the usage is at the client's threshold or above; null: it is below, and the next crossing counts. */
    alertedAt: instant('alerted_at'),
  },
  (t) => [
    primaryKey({ columns: [t.clientId, t.regionId, t.kind] }),
    check('quota_counters_usage_is_not_negative', sql`${t.usage} >= 0`),
  ],
);

/** Clients that chose a threshold, or were told of a crossing. */
export const quotaThresholds = pgTable('quota_thresholds', {
  clientId: integer('client_id').primaryKey(),
  /** Percent; null: the default. */
  threshold: integer('threshold'),
  /** What was last issued, and when. */
  lastMessage: json('last_message'),
  lastSending: instant('last_sending'),
});

/** Crossings that no message tells of yet: those of one grouping window. */
export const quotaCrossings = pgTable(
  'quota_crossings',
  {
    clientId: integer('client_id').notNull(),
    regionId: integer('region_id').notNull(),
    kind: text('kind').notNull(),
    usage: bigint('usage', { mode: 'number' }).notNull(),
    limit: bigint('limit', { mode: 'number' }).notNull(),
  },
  (t) => [primaryKey({ columns: [t.clientId, t.regionId, t.kind] })],
);
