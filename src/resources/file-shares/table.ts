import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core';
import { instant, owned, parentUuid, reconciled, referencedUuid } from '../../platform/columns.ts';
import type { Tags } from '../../tags/tags.ts';
import { networks } from '../networks/table.ts';
import { subnets } from '../subnets/table.ts';
import type { AccessRuleState, FileShareStatus, FileShareTypeName } from './schema.ts';

/** One row per share, from the create request until the host is observed to have deleted it. */
export const fileShares = pgTable(
  'file_shares',
  {
    id: uuid('id').primaryKey(),
    ...owned,
    typeName: text('type_name').notNull().$type<FileShareTypeName>(),
    /** GiB: what the client pays for and the quota counts. */
    size: bigint('size', { mode: 'number' }).notNull(),
    /** GiB: what the host provides so far; null until the host has created the share. */
    observedSize: bigint('observed_size', { mode: 'number' }),
    /** Whether a real driver ever created it: then a host has its data, and it is never created again. */
    observedReal: boolean('observed_real').notNull().default(false),
    networkId: referencedUuid('network_id', () => networks.id),
    subnetId: referencedUuid('subnet_id', () => subnets.id),
    /** Null: never given, which means false; responses omit it. */
    rootSquash: boolean('root_squash'),
    allowedCharacters: text('allowed_characters').$type<'LCD' | 'NPL'>(),
    pathLength: text('path_length').$type<'LCD' | 'NPL'>(),
    tags: jsonb('tags').notNull().$type<Tags>(),
    status: text('status').notNull().$type<FileShareStatus>(),
    connectionPoint: text('connection_point'),
    /** In a region of several hosts: the address of its NFS group, and its export id there. They never change. */
    nfsGroup: text('nfs_group'),
    exportId: integer('export_id'),
    ...reconciled,
    deletedAt: instant('deleted_at'),
  },
  (t) => [
    index('file_shares_project').on(t.projectId, t.regionId, t.createdAt, t.id),
    index('file_shares_client').on(t.clientId, t.regionId),
    index('file_shares_network').on(t.networkId),
    index('file_shares_subnet').on(t.subnetId),
    uniqueIndex('file_shares_export').on(t.regionId, t.nfsGroup, t.exportId),
    index('file_shares_unconverged').on(t.regionId).where(sql`${t.observedGeneration} < ${t.generation}`),
  ],
);

/** The NFS groups of regions of several hosts. A change of their shares locks the row. */
export const nfsGroups = pgTable(
  'nfs_groups',
  {
    regionId: integer('region_id').notNull(),
    address: text('address').notNull(),
    /** The last export id that was assigned: ids are reused as late as possible. */
    lastExportId: integer('last_export_id').notNull(),
  },
  (t) => [primaryKey({ columns: [t.regionId, t.address] })],
);

/** The last measurement of the host. In a table of its own, because a share is locked by its changes. */
export const fileShareUsage = pgTable('file_share_usage', {
  fileShareId: uuid('file_share_id')
    .primaryKey()
    .references(() => fileShares.id, { onDelete: 'cascade' }),
  usedBytes: bigint('used_bytes', { mode: 'number' }).notNull(),
  totalBytes: bigint('total_bytes', { mode: 'number' }).notNull(),
});

export const fileShareAccessRules = pgTable(
  'file_share_access_rules',
  {
    id: uuid('id').primaryKey(),
    fileShareId: parentUuid('file_share_id', () => fileShares.id),
    accessLevel: text('access_level').notNull().$type<'ro' | 'rw'>(),
    /** Canonical (`1.2.3.4/32`), so that a network has one rule. */
    network: text('network').notNull(),
    /** As the client wrote it. */
    accessTo: text('access_to').notNull(),
    state: text('state').notNull().$type<AccessRuleState>(),
    createdAt: instant('created_at').notNull(),
    /** Set once the client deletes the rule: the host then denies access even when the removal fails. */
    deletedAt: instant('deleted_at'),
  },
  (t) => [uniqueIndex('file_share_access_rules_network').on(t.fileShareId, t.network)],
);
