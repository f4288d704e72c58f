import { sql } from 'drizzle-orm';
import { bigint, boolean, index, jsonb, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { instant, owned, reconciled } from '../../platform/columns.ts';
import type { Tags } from '../../tags/tags.ts';
import type { VolumeStatus, VolumeTypeName } from './schema.ts';

/** One row per volume, from the create request until the host is observed to have deleted it. */
export const volumes = pgTable(
  'volumes',
  {
    id: uuid('id').primaryKey(),
    ...owned,
    typeName: text('type_name').notNull().$type<VolumeTypeName>(),
    /** GiB: what the client pays for and the quota counts. */
    size: bigint('size', { mode: 'number' }).notNull(),
    /** GiB: what the host provides so far; null until the host has created the volume. */
    observedSize: bigint('observed_size', { mode: 'number' }),
    /** Whether a real driver ever created it: then a host has its data, and it is never created again. */
    observedReal: boolean('observed_real').notNull().default(false),
    /** The snapshot that it was created from. The snapshot cannot be deleted until the host has the volume. */
    sourceSnapshotId: uuid('source_snapshot_id'),
    /** The snapshot that the host is to restore; null when no revert is pending. */
    revertTo: uuid('revert_to'),
    tags: jsonb('tags').notNull().$type<Tags>(),
    status: text('status').notNull().$type<VolumeStatus>(),
    ...reconciled,
    updatedAt: instant('updated_at').notNull(),
    deletedAt: instant('deleted_at'),
  },
  (t) => [
    index('volumes_project').on(t.projectId, t.regionId, t.createdAt, t.id),
    index('volumes_client').on(t.clientId, t.regionId),
    index('volumes_source_snapshot').on(t.sourceSnapshotId),
    index('volumes_unconverged').on(t.regionId).where(sql`${t.observedGeneration} < ${t.generation}`),
  ],
);
