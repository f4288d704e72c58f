import { boolean, index, integer, jsonb, pgTable, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import { instant } from '../../platform/columns.ts';
import { sql } from 'drizzle-orm';
import type { Tags } from '../../tags/tags.ts';
import { ofProject } from '../projects/table.ts';

/** Networks are records of the control plane: no packets are routed. */
export const networks = pgTable(
  'networks',
  {
    id: uuid('id').primaryKey(),
    ...ofProject,
    type: text('type').notNull().$type<'vlan' | 'vxlan'>(),
    segmentationId: integer('segmentation_id').notNull(),
    mtu: integer('mtu').notNull(),
    /** The network of a resource whose create request names none. */
    isDefault: boolean('is_default').notNull(),
    tags: jsonb('tags').notNull().$type<Tags>(),
    creatorTaskId: uuid('creator_task_id'),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
  },
  (t) => [
    index('networks_project').on(t.projectId, t.regionId, t.createdAt, t.id),
    uniqueIndex('networks_default').on(t.projectId, t.regionId).where(sql`${t.isDefault}`),
  ],
);
