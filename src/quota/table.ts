import { sql } from 'drizzle-orm';
import { bigint, check, integer, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';

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
  },
  (t) => [
    primaryKey({ columns: [t.clientId, t.regionId, t.kind] }),
    check('quota_counters_usage_is_not_negative', sql`${t.usage} >= 0`),
  ],
);
