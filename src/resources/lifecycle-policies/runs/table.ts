import { sql } from 'drizzle-orm';
import { index, integer, jsonb, pgTable, primaryKey, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import { instant, parentUuid } from '../../../platform/columns.ts';
import { policyId } from '../table.ts';

/** One row per run of a schedule. */
export const lifecyclePolicyRuns = pgTable(
  'lifecycle_policy_runs',
  {
    id: uuid('id').primaryKey(),
    policyId: policyId(),
    /** Of the policy, so that unfinished runs of a region are found without a join. */
    regionId: integer('region_id').notNull(),
    /** The schedule may have been removed. */
    scheduleId: uuid('schedule_id').notNull(),
    /** The instant at which the run was due; with the schedule, it identifies the run. */
    scheduledAt: instant('scheduled_at').notNull(),
    startedAt: instant('started_at').notNull(),
    /** The task of the client that requested the run; null: the schedule was due. */
    taskId: uuid('task_id'),
    /** When the run ended, after all its volumes were settled; null: it has not. */
    doneAt: instant('done_at'),
  },
  (t) => [
    uniqueIndex('lifecycle_policy_runs_instant').on(t.scheduleId, t.scheduledAt),
    index('lifecycle_policy_runs_policy').on(t.policyId, t.scheduledAt, t.id),
    index('lifecycle_policy_runs_open').on(t.regionId).where(sql`${t.doneAt} is null`),
    index('lifecycle_policy_runs_done').on(t.doneAt),
  ],
);

/** `pending`: the snapshot is not yet requested. `running`: it is in creation. Settled: `made` and `failed`. */
type RunVolumeState = 'pending' | 'running' | 'made' | 'failed';

/** The run volumes: one row for each volume of a run. */
export const lifecyclePolicyRunVolumes = pgTable(
  'lifecycle_policy_run_volumes',
  {
    id: uuid('id').primaryKey(),
    runId: parentUuid('run_id', () => lifecyclePolicyRuns.id),
    regionId: integer('region_id').notNull(),
    /** No foreign keys: clients may delete volumes and snapshots. */
    volumeId: uuid('volume_id').notNull(),
    snapshotId: uuid('snapshot_id'),
    /** The name of the snapshot, from the schedule's template. */
    name: text('name').notNull(),
    state: text('state').notNull().$type<RunVolumeState>(),
    /** Why it failed; for a pending row, why it waits for the deletion of an older snapshot. */
    message: text('message'),
    /** When its snapshot may expire by age; null: never, or only by number. */
    expireAt: instant('expire_at'),
    /** The snapshots of the volume and schedule that expired when this one was created. */
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

/** Runs that started late or have not started in time, and instants that were skipped, until their client was notified. */
export const lifecyclePolicyMissedRuns = pgTable(
  'lifecycle_policy_missed_runs',
  {
    policyId: policyId(),
    scheduleId: uuid('schedule_id').notNull(),
    /** The instant at which the late run was due. */
    scheduledAt: instant('scheduled_at').notNull(),
    noticedAt: instant('noticed_at').notNull(),
    /** When the run started after all; null: it has not started. */
    startedAt: instant('started_at'),
    /** Later instants that the run replaced. */
    skipped: integer('skipped').notNull().default(0),
    /** When a notification reported it; null: none has. */
    reportedAt: instant('reported_at'),
  },
  (t) => [
    primaryKey({ columns: [t.scheduleId, t.scheduledAt] }),
    index('lifecycle_policy_missed_runs_reported').on(t.reportedAt),
    index('lifecycle_policy_missed_runs_open').on(t.policyId).where(sql`${t.reportedAt} is null`),
  ],
);
