import { sql } from 'drizzle-orm';
import { bigint, boolean, index, integer, jsonb, pgTable, primaryKey, text, uuid } from 'drizzle-orm/pg-core';
import { instant, owned, parentUuid } from '../../platform/columns.ts';
import { volumes } from '../volumes/table.ts';
import type { CreateSchedule } from './schedule/schema.ts';
import type { LifecyclePolicyStatus } from './schema.ts';

/** Policies are only rows. The snapshots of their runs outlive them. */
export const lifecyclePolicies = pgTable(
  'lifecycle_policies',
  {
    id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
    ...owned,
    action: text('action').notNull().$type<'volume_snapshot'>(),
    status: text('status').notNull().$type<LifecyclePolicyStatus>(),
    userId: integer('user_id').notNull(),
    createdAt: instant('created_at').notNull(),
    /** When a notification last reported missed runs; null: none has. */
    missedReportedAt: instant('missed_reported_at'),
  },
  (t) => [index('lifecycle_policies_project').on(t.projectId, t.regionId, t.id)],
);

/** The policy of a row, which is removed with it. */
export const policyId = () =>
  integer('policy_id')
    .notNull()
    .references(() => lifecyclePolicies.id, { onDelete: 'cascade' });

export const lifecyclePolicySchedules = pgTable(
  'lifecycle_policy_schedules',
  {
    id: uuid('id').primaryKey(),
    policyId: policyId(),
    /** Of the policy, so that due schedules of a region are found without a join. */
    regionId: integer('region_id').notNull(),
    /** Responses list schedules in the order in which they were added. */
    position: integer('position').notNull(),
    /** As in the request. */
    given: jsonb('given').notNull().$type<CreateSchedule>(),
    /** Null: snapshots are retained by number alone. */
    retentionSeconds: bigint('retention_seconds', { mode: 'number' }),
    userId: integer('user_id').notNull(),
    /** The start of an interval. */
    createdAt: instant('created_at').notNull(),
    /** Null while the policy is paused. */
    nextRunAt: instant('next_run_at'),
    /** Whether the client was notified that runs fail; the next notification needs a successful run in between. */
    failing: boolean('failing').notNull().default(false),
  },
  (t) => [
    index('lifecycle_policy_schedules_policy').on(t.policyId, t.position),
    index('lifecycle_policy_schedules_due').on(t.regionId, t.nextRunAt).where(sql`${t.nextRunAt} is not null`),
  ],
);

export const lifecyclePolicyVolumes = pgTable(
  'lifecycle_policy_volumes',
  {
    policyId: policyId(),
    volumeId: parentUuid('volume_id', () => volumes.id),
  },
  (t) => [primaryKey({ columns: [t.policyId, t.volumeId] }), index('lifecycle_policy_volumes_volume').on(t.volumeId)],
);
