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
import { bytes, instant, owned } from '../../platform/columns.ts';

/** One row per registry, until the host has removed its contents. The id is part of the prefix and never reused. */
export const registries = pgTable(
  'registries',
  {
    id: serial('id').primaryKey(),
    ...owned,
    /** GiB. */
    storageLimit: bigint('storage_limit', { mode: 'number' }).notNull(),
    /** Bytes: the sum of `registry_blobs`. */
    storageUsed: bigint('storage_used', { mode: 'number' }).notNull().default(0),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
    deletedAt: instant('deleted_at'),
    /** When contents were last removed: an earlier scan of the storage still includes them. */
    removedAt: instant('removed_at'),
  },
  (t) => [
    uniqueIndex('registries_name').on(t.projectId, t.regionId, t.name).where(sql`${t.deletedAt} is null`),
    index('registries_client').on(t.clientId, t.regionId),
    index('registries_leaving').on(t.regionId).where(sql`${t.deletedAt} is not null`),
  ],
);

/** The registry of a row, which is removed with it. */
export const registryId = () =>
  integer('registry_id')
    .notNull()
    .references(() => registries.id, { onDelete: 'cascade' });

export const registryUsers = pgTable(
  'registry_users',
  {
    id: serial('id').primaryKey(),
    registryId: registryId(),
    name: text('name').notNull(),
    /** A MAC of name and secret: identifies the user, and a copy of the database grants no access. */
    secretMac: bytes('secret_mac').notNull(),
    /** Units: days; -1: unlimited. */
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

/** Removals that the host has yet to do; their requests wait for them. */
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

/** When a push to a repository was last allowed, and until when garbage collection blocks pushes. */
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

/** Where the images of a region are served, as its worker last reported. */
export const registryHosts = pgTable('registry_hosts', {
  regionId: integer('region_id').primaryKey(),
  address: text('address').notNull(),
});

/** One row: the encrypted keys of the token server, and the API server that authenticates clients. */
export const registryAuthority = pgTable('registry_authority', {
  id: integer('id').primaryKey(),
  keys: bytes('keys').notNull(),
  apiUrl: text('api_url'),
  /** When that server last announced itself. */
  apiSeenAt: instant('api_seen_at'),
});
