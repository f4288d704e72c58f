import { sql } from 'drizzle-orm';
import { bigint, boolean, index, jsonb, pgTable, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import { bytes, instant } from '../../platform/columns.ts';
import { ofProject } from '../projects/table.ts';
import type { Container } from './schema.ts';

/** A deleted key stays as a row for a day, so that the caches of all servers see the deletion. */
export const apiKeys = pgTable(
  'api_keys',
  {
    id: uuid('id').primaryKey(),
    ...ofProject,
    description: text('description').notNull(),
    containers: jsonb('containers').notNull().$type<Container[]>(),
    expire: instant('expire'),
    isDisabled: boolean('is_disabled').notNull(),
    /** The part of the secret before the dot. */
    keyId: text('key_id').notNull().unique(),
    /** SHA-256 of the part after the dot. */
    secretHash: bytes('secret_hash').notNull(),
    createdAt: instant('created_at').notNull(),
    deletedAt: instant('deleted_at'),
    /** Increases with every change of any key, in the order of the commits (key-cache.ts). */
    version: bigint('version', { mode: 'number' }).notNull(),
  },
  (t) => [
    uniqueIndex('api_keys_name').on(t.projectId, t.regionId, t.name).where(sql`${t.deletedAt} is null`),
    index('api_keys_version').on(t.version),
  ],
);
