import { sql } from 'drizzle-orm';
import { bigint, boolean, index, integer, jsonb, pgTable, primaryKey, text, uuid } from 'drizzle-orm/pg-core';
import { instant } from '../../platform/columns.ts';
import { volumes } from '../volumes/table.ts';
import type { CreateSchedule, LifecyclePolicyStatus } from './schema.ts';

/** Policies live in rows alone; what their runs make are snapshots, which outlive them. */
export const lifecyclePolicies = pgTable(
  'lifecycle_policies',
  {
    id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
    clientId: integer('client_id').notNull(),
    projectId: integer('project_id').notNull(),
    regionId: integer('region_id').notNull(),
    name: text('name').notNull(),
    action: text('action').notNull().$type<'volume_snapshot'>(),
    status: text('status').notNull().$type<LifecyclePolicyStatus>(),
    userId: integer('user_id').notNull(),
    createdAt: instant('created_at').notNull(),
  },
  (t) => [index('lifecycle_policies_project').on(t.projectId, t.regionId, t.id)],
);

export const lifecyclePolicySchedules = pgTable(
  'lifecycle_policy_schedules',
  {
    id: uuid('id').primaryKey(),
    policyId: integer('policy_id')
      .notNull()
      .references(() => lifecyclePolicies.id, { onDelete: 'cascade' }),
    /** The policy's, so that what is due in a region is found without looking at any policy. */
    regionId: integer('region_id').notNull(),
    /** Schedules are shown in the order in which they were given. */
    position: integer('position').notNull(),
    /** As the client gave it. */
    given: jsonb('given').notNull().$type<CreateSchedule>(),
    /** How long its snapshots are kept; null: by number alone. */
    retentionSeconds: bigint('retention_seconds', { mode: 'number' }),
    userId: integer('user_id').notNull(),
    /** What an interval is measured from. */
    createdAt: instant('created_at').notNull(),
    /** Null while the policy is paused. */
    nextRunAt: instant('next_run_at'),
    /** Whether the client was told that its runs fail; until one succeeds, it is not told again. */
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
    policyId: integer('policy_id')
      .notNull()
      .references(() => lifecyclePolicies.id, { onDelete: 'cascade' }),
    volumeId: uuid('volume_id')
      .notNull()
      .references(() => volumes.id, { onDelete: 'cascade' }),
  },
  (t) => [primaryKey({ columns: [t.policyId, t.volumeId] }), index('lifecycle_policy_volumes_volume').on(t.volumeId)],
);
