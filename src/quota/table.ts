import { sql } from 'drizzle-orm';
import { bigint, check, integer, json, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { instant } from '../platform/columns.ts';

/** One row a client, region and kind that was ever used or limited. Region 0 has the global kinds. */
export const quotaCounters = pgTable(
  'quota_counters',
  {
    clientId: integer('client_id').notNull(),
    regionId: integer('region_id').notNull(),
    kind: text('kind').notNull(),
    usage: bigint('usage', { mode: 'number' }).notNull().default(0),
    /** The limit that an administrator set; null: the default of the quotas file. */
    limitOverride: bigint('limit_override', { mode: 'number' }),
    /** When the usage reached the client's threshold; null: it is below the threshold. */
    alertedAt: instant('alerted_at'),
  },
  (t) => [
    primaryKey({ columns: [t.clientId, t.regionId, t.kind] }),
    check('quota_counters_usage_is_not_negative', sql`${t.usage} >= 0`),
  ],
);

/** Clients that set a threshold or were notified of a crossing. */
export const quotaThresholds = pgTable('quota_thresholds', {
  clientId: integer('client_id').primaryKey(),
  /** Percent; null: the default. */
  threshold: integer('threshold'),
  /** The last message, and when it was issued. */
  lastMessage: json('last_message'),
  lastSending: instant('last_sending'),
});

/** Crossings that no message has reported yet: those of one grouping window. */
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
