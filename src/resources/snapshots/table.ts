import { sql } from 'drizzle-orm';
import { bigint, boolean, index, integer, jsonb, pgTable, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import { instant } from '../../platform/columns.ts';
import type { Tags } from '../../tags/tags.ts';
import { volumes } from '../volumes/table.ts';
import type { SnapshotStatus } from './schema.ts';

/** One row a snapshot, from its acceptance until its deletion was observed. */
export const snapshots = pgTable(
  'snapshots',
  {
    id: uuid('id').primaryKey(),
    clientId: integer('client_id').notNull(),
    projectId: integer('project_id').notNull(),
    regionId: integer('region_id').notNull(),
    volumeId: uuid('volume_id')
      .notNull()
      .references(() => volumes.id),
    name: text('name').notNull(),
    description: text('description'),
    /** GiB of the volume when the snapshot was asked for. */
    size: bigint('size', { mode: 'number' }).notNull(),
    /** The run of a policy that asked for it; null: a person did. The policy may be gone. */
    lifecyclePolicyId: integer('lifecycle_policy_id'),
    scheduleId: uuid('schedule_id'),
    scheduledAt: instant('scheduled_at'),
    /** Whether a driver that does not pretend ever made it: then it is never made anew from what the volume holds by now. */
    observedReal: boolean('observed_real').notNull().default(false),
    tags: jsonb('tags').notNull().$type<Tags>(),
    status: text('status').notNull().$type<SnapshotStatus>(),
    creatorTaskId: uuid('creator_task_id').notNull(),
    /** Grows with every change that the host must follow. */
    generation: bigint('generation', { mode: 'number' }).notNull(),
    /** The generation that the host was last seen to have, or to have failed at for good. */
    observedGeneration: bigint('observed_generation', { mode: 'number' }).notNull(),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
    deletedAt: instant('deleted_at'),
  },
  (t) => [
    index('snapshots_project').on(t.projectId, t.regionId, t.createdAt, t.id),
    index('snapshots_client').on(t.clientId, t.regionId),
    index('snapshots_volume').on(t.volumeId, t.createdAt, t.id),
    index('snapshots_policy').on(t.lifecyclePolicyId),
    /** A run is named by its instant: the same run can make no second snapshot of a volume. */
    uniqueIndex('snapshots_run').on(t.scheduleId, t.volumeId, t.scheduledAt),
    index('snapshots_error_deleting').on(t.regionId).where(sql`${t.status} = 'error_deleting'`),
    index('snapshots_unconverged').on(t.regionId).where(sql`${t.observedGeneration} < ${t.generation}`),
  ],
);
