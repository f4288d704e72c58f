import { sql } from 'drizzle-orm';
import { bigint, boolean, index, integer, jsonb, pgTable, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import { instant, owned, reconciled, referencedUuid } from '../../platform/columns.ts';
import type { Tags } from '../../tags/tags.ts';
import { volumes } from '../volumes/table.ts';
import type { SnapshotStatus } from './schema.ts';

/** One row per snapshot, from the create request until the host is observed to have deleted it. */
export const snapshots = pgTable(
  'snapshots',
  {
    id: uuid('id').primaryKey(),
    ...owned,
    volumeId: referencedUuid('volume_id', () => volumes.id),
    description: text('description'),
    /** GiB: the size of the volume when the snapshot was requested. */
    size: bigint('size', { mode: 'number' }).notNull(),
    /** The policy whose run requested the snapshot; null when a client did. The policy may have been deleted since. */
    lifecyclePolicyId: integer('lifecycle_policy_id'),
    scheduleId: uuid('schedule_id'),
    scheduledAt: instant('scheduled_at'),
    /** Whether a real driver ever created it: then it is never created again from the newer data of the volume. */
    observedReal: boolean('observed_real').notNull().default(false),
    tags: jsonb('tags').notNull().$type<Tags>(),
    status: text('status').notNull().$type<SnapshotStatus>(),
    ...reconciled,
    updatedAt: instant('updated_at').notNull(),
    deletedAt: instant('deleted_at'),
  },
  (t) => [
    index('snapshots_project').on(t.projectId, t.regionId, t.createdAt, t.id),
    index('snapshots_client').on(t.clientId, t.regionId),
    index('snapshots_volume').on(t.volumeId, t.createdAt, t.id),
    index('snapshots_policy').on(t.lifecyclePolicyId),
    /** Schedule and instant identify a run, which makes at most one snapshot of a volume. */
    uniqueIndex('snapshots_run').on(t.scheduleId, t.volumeId, t.scheduledAt),
    index('snapshots_error_deleting').on(t.regionId).where(sql`${t.status} = 'error_deleting'`),
    index('snapshots_unconverged').on(t.regionId).where(sql`${t.observedGeneration} < ${t.generation}`),
  ],
);
