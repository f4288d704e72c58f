import { integer, pgTable, text, unique } from 'drizzle-orm/pg-core';
import { instant } from '../platform/columns.ts';

/** Scheduled backups, one row for each instant of the schedule that was due. */
export const backupRuns = pgTable(
  'backup_runs',
  {
    id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
    scheduledAt: instant('scheduled_at').notNull(),
    startedAt: instant('started_at').notNull(),
    endedAt: instant('ended_at'),
    host: text('host').notNull(),
    /** Null until it succeeded. */
    backupId: text('backup_id'),
    /** Why it failed. */
    error: text('error'),
  },
  (t) => [unique('backup_runs_scheduled_at').on(t.scheduledAt)],
);
