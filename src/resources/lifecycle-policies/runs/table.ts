import { sql } from 'drizzle-orm';
import { index, integer, jsonb, pgTable, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import { instant } from '../../../platform/columns.ts';
import { lifecyclePolicies } from '../table.ts';

/** One row a time that a schedule ran. */
export const lifecyclePolicyRuns = pgTable(
  'lifecycle_policy_runs',
  {
    id: uuid('id').primaryKey(),
    policyId: integer('policy_id')
      .notNull()
      .references(() => lifecyclePolicies.id, { onDelete: 'cascade' }),
    /** The policy's, so that what is open in a region is found without looking at any policy. */
    regionId: integer('region_id').notNull(),
    /** The schedule may be gone. */
    scheduleId: uuid('schedule_id').notNull(),
    /** The instant that it was due at; it names the run. */
    scheduledAt: instant('scheduled_at').notNull(),
    startedAt: instant('started_at').notNull(),
    doneAt: instant('done_at'),
  },
  (t) => [
    uniqueIndex('lifecycle_policy_runs_instant').on(t.scheduleId, t.scheduledAt),
    index('lifecycle_policy_runs_policy').on(t.policyId, t.scheduledAt, t.id),
    index('lifecycle_policy_runs_open').on(t.regionId).where(sql`${t.doneAt} is null`),
    index('lifecycle_policy_runs_done').on(t.doneAt),
  ],
);

/** `pending`: the snapshot is to be asked for. `running`: the snapshot is being made. */
export const runVolumeStates = ['pending', 'running', 'made', 'failed'] as const;
export type RunVolumeState = (typeof runVolumeStates)[number];

/** One row a run and volume. */
export const lifecyclePolicyRunVolumes = pgTable(
  'lifecycle_policy_run_volumes',
  {
    id: uuid('id').primaryKey(),
    runId: uuid('run_id')
      .notNull()
      .references(() => lifecyclePolicyRuns.id, { onDelete: 'cascade' }),
    regionId: integer('region_id').notNull(),
    /** Neither is held: volumes and snapshots go as their owner likes. */
    volumeId: uuid('volume_id').notNull(),
    snapshotId: uuid('snapshot_id'),
    /** What the snapshot is called, by the schedule's template. */
    name: text('name').notNull(),
    state: text('state').notNull().$type<RunVolumeState>(),
    /** Why it failed; of a pending one, what it waits for an older snapshot to go for. */
    message: text('message'),
    /** When to look whether its snapshot is to go; null: only when there is a newer one, or not at all. */
    expireAt: instant('expire_at'),
    /** Snapshots of the volume and schedule that were let go on account of this one. */
    expired: jsonb('expired').notNull().$type<string[]>().default([]),
  },
  (t) => [
    uniqueIndex('lifecycle_policy_run_volumes_run').on(t.runId, t.volumeId),
    index('lifecycle_policy_run_volumes_snapshot').on(t.snapshotId),
    index('lifecycle_policy_run_volumes_unsettled')
      .on(t.regionId, t.state)
      .where(sql`${t.state} in ('pending', 'running')`),
    index('lifecycle_policy_run_volumes_expiring').on(t.regionId, t.expireAt).where(sql`${t.expireAt} is not null`),
  ],
);
