import { sql } from 'drizzle-orm';
import { bigint, boolean, index, integer, jsonb, pgTable, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import { instant } from '../../platform/columns.ts';
import type { Tags } from '../../tags/tags.ts';
import { networks } from '../networks/table.ts';
import { subnets } from '../subnets/table.ts';
import type { AccessRuleState, FileShareStatus, FileShareTypeName } from './schema.ts';

/** One row a share, from its acceptance until its deletion was observed. */
export const fileShares = pgTable(
  'file_shares',
  {
    id: uuid('id').primaryKey(),
    clientId: integer('client_id').notNull(),
    projectId: integer('project_id').notNull(),
    regionId: integer('region_id').notNull(),
    name: text('name').notNull(),
    typeName: text('type_name').notNull().$type<FileShareTypeName>(),
    /** GiB, what the customer pays for and the quota counts. */
    size: bigint('size', { mode: 'number' }).notNull(),
    /** GiB, what the host has given so far. */
    observedSize: bigint('observed_size', { mode: 'number' }),
    /** Whether a driver that does not pretend ever made it: then it has data somewhere, and is never made anew. */
    observedReal: boolean('observed_real').notNull().default(false),
    networkId: uuid('network_id')
      .notNull()
      .references(() => networks.id),
    subnetId: uuid('subnet_id')
      .notNull()
      .references(() => subnets.id),
    rootSquash: boolean('root_squash').notNull(),
    allowedCharacters: text('allowed_characters').$type<'LCD' | 'NPL'>(),
    pathLength: text('path_length').$type<'LCD' | 'NPL'>(),
    tags: jsonb('tags').notNull().$type<Tags>(),
    status: text('status').notNull().$type<FileShareStatus>(),
    connectionPoint: text('connection_point'),
    creatorTaskId: uuid('creator_task_id').notNull(),
    /** Grows with every change that the host must follow. */
    generation: bigint('generation', { mode: 'number' }).notNull(),
    /** The generation that the host was last seen to have, or to have failed at for good. */
    observedGeneration: bigint('observed_generation', { mode: 'number' }).notNull(),
    createdAt: instant('created_at').notNull(),
    deletedAt: instant('deleted_at'),
  },
  (t) => [
    index('file_shares_project').on(t.projectId, t.regionId, t.createdAt, t.id),
    index('file_shares_client').on(t.clientId, t.regionId),
    index('file_shares_network').on(t.networkId),
    index('file_shares_subnet').on(t.subnetId),
    index('file_shares_unconverged').on(t.regionId).where(sql`${t.observedGeneration} < ${t.generation}`),
  ],
);

export const fileShareAccessRules = pgTable(
  'file_share_access_rules',
  {
    id: uuid('id').primaryKey(),
    fileShareId: uuid('file_share_id')
      .notNull()
      .references(() => fileShares.id, { onDelete: 'cascade' }),
    accessLevel: text('access_level').notNull().$type<'ro' | 'rw'>(),
    /** Canonical: `1.2.3.4/32`, so that one network has one rule. */
    network: text('network').notNull(),
    /** As the customer wrote it. */
    accessTo: text('access_to').notNull(),
    state: text('state').notNull().$type<AccessRuleState>(),
    createdAt: instant('created_at').notNull(),
    /** Once it is to go, it never lets anybody in again, whatever fails on the way. */
    deletedAt: instant('deleted_at'),
  },
  (t) => [uniqueIndex('file_share_access_rules_network').on(t.fileShareId, t.network)],
);
