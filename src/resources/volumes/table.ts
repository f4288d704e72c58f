import { sql } from 'drizzle-orm';
import { bigint, boolean, index, integer, jsonb, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { instant } from '../../platform/columns.ts';
import type { Tags } from '../../tags/tags.ts';
import type { VolumeStatus, VolumeTypeName } from './schema.ts';

/** One row a volume, from its acceptance until its deletion was observed. */
export const volumes = pgTable(
  'volumes',
  {
    id: uuid('id').primaryKey(),
    clientId: integer('client_id').notNull(),
    projectId: integer('project_id').notNull(),
    regionId: integer('region_id').notNull(),
    name: text('name').notNull(),
    typeName: text('type_name').notNull().$type<VolumeTypeName>(),
    /** GiB, what the customer pays for and the quota counts. */
    size: bigint('size', { mode: 'number' }).notNull(),
    /** GiB, what the host has given so far; null: the host never had it. */
    observedSize: bigint('observed_size', { mode: 'number' }),
    /** Whether a driver that does not pretend ever made it: then it has data somewhere, and is never made anew. */
    observedReal: boolean('observed_real').notNull().default(false),
    /** The snapshot that it was made from. Kept from deletion until the host has the volume; afterwards only a memory. */
    sourceSnapshotId: uuid('source_snapshot_id'),
    /** The snapshot that the host is asked to revert it to; null again when that is done. */
    revertTo: uuid('revert_to'),
    tags: jsonb('tags').notNull().$type<Tags>(),
    status: text('status').notNull().$type<VolumeStatus>(),
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
    index('volumes_project').on(t.projectId, t.regionId, t.createdAt, t.id),
    index('volumes_client').on(t.clientId, t.regionId),
    index('volumes_source_snapshot').on(t.sourceSnapshotId),
    index('volumes_unconverged').on(t.regionId).where(sql`${t.observedGeneration} < ${t.generation}`),
  ],
);
