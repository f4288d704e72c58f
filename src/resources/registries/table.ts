import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  index,
  integer,
  pgTable,
  primaryKey,
  serial,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core';
import { bytes, instant } from '../../platform/columns.ts';

/** One row a registry, until its content was taken out of service. Its id is part of its prefix, and never used again. */
export const registries = pgTable(
  'registries',
  {
    id: serial('id').primaryKey(),
    clientId: integer('client_id').notNull(),
    projectId: integer('project_id').notNull(),
    regionId: integer('region_id').notNull(),
    name: text('name').notNull(),
    /** GiB. */
    storageLimit: bigint('storage_limit', { mode: 'number' }).notNull(),
    /** Bytes: the sum of `registry_blobs`. */
    storageUsed: bigint('storage_used', { mode: 'number' }).notNull().default(0),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
    deletedAt: instant('deleted_at'),
    /** When something of what it holds was last removed: a look at the storage from before still shows it. */
    removedAt: instant('removed_at'),
  },
  (t) => [
    uniqueIndex('registries_name').on(t.projectId, t.regionId, t.name).where(sql`${t.deletedAt} is null`),
    index('registries_client').on(t.clientId, t.regionId),
    index('registries_leaving').on(t.regionId).where(sql`${t.deletedAt} is not null`),
  ],
);

const registryId = () =>
  integer('registry_id')
    .notNull()
    .references(() => registries.id, { onDelete: 'cascade' });

export const registryUsers = pgTable(
  'registry_users',
  {
    id: serial('id').primaryKey(),
    registryId: registryId(),
    name: text('name').notNull(),
    /** A MAC over name and secret, so that users are found by both, and a copy of the database opens nothing. */
    secretMac: bytes('secret_mac').notNull(),
    /** Days; -1: for ever. */
    duration: integer('duration').notNull(),
    readOnly: boolean('read_only').notNull(),
    createdAt: instant('created_at').notNull(),
    /** Null: never. */
    expiresAt: instant('expires_at'),
  },
  (t) => [
    uniqueIndex('registry_users_name').on(t.registryId, t.name),
    index('registry_users_login').on(t.name, t.secretMac),
  ],
);

/** What is to be taken from the host before whoever asked for it is answered. */
export const registryRemovals = pgTable(
  'registry_removals',
  {
    id: uuid('id').primaryKey(),
    registryId: registryId(),
    repository: text('repository').notNull(),
    digest: text('digest'),
    tag: text('tag'),
  },
  (t) => [index('registry_removals_registry').on(t.registryId)],
);

/** When somebody was last let in to push to a repository, and until when garbage collection keeps everybody out. */
export const registryPushes = pgTable(
  'registry_pushes',
  {
    registryId: registryId(),
    repository: text('repository').notNull(),
    grantedAt: instant('granted_at').notNull(),
    heldUntil: instant('held_until'),
  },
  (t) => [primaryKey({ columns: [t.registryId, t.repository] })],
);

/** Where the images of a region are served, as its worker last said. */
export const registryHosts = pgTable('registry_hosts', {
  regionId: integer('region_id').primaryKey(),
  address: text('address').notNull(),
});

/** One row: the keys of the token server, encrypted, and the API server that clients are sent to. */
export const registryAuthority = pgTable('registry_authority', {
  id: integer('id').primaryKey(),
  keys: bytes('keys').notNull(),
  apiUrl: text('api_url'),
  /** When that server last said so. */
  apiSeenAt: instant('api_seen_at'),
});
