import { bigint, index, integer, pgTable, primaryKey, serial, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { instant } from '../../../platform/columns.ts';
import { registryId } from '../table.ts';

const repositoryId = () =>
  integer('repository_id')
    .notNull()
    .references(() => registryRepositories.id, { onDelete: 'cascade' });

/*
 * The known contents of the region's host, from its events and from the worker's scans of the storage. `seen_at` is the
 * time of the last event about a row: a scan that began earlier must not remove it.
 */

export const registryRepositories = pgTable(
  'registry_repositories',
  {
    id: serial('id').primaryKey(),
    registryId: registryId(),
    name: text('name').notNull(),
    pullCount: bigint('pull_count', { mode: 'number' }).notNull().default(0),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
    seenAt: instant('seen_at').notNull(),
  },
  (t) => [uniqueIndex('registry_repositories_name').on(t.registryId, t.name)],
);

export const registryArtifacts = pgTable(
  'registry_artifacts',
  {
    id: serial('id').primaryKey(),
    repositoryId: repositoryId(),
    digest: text('digest').notNull(),
    /** Bytes: the manifest and everything that it names. */
    size: bigint('size', { mode: 'number' }).notNull(),
    pushedAt: instant('pushed_at').notNull(),
    pulledAt: instant('pulled_at'),
    seenAt: instant('seen_at').notNull(),
  },
  (t) => [uniqueIndex('registry_artifacts_digest').on(t.repositoryId, t.digest)],
);

export const registryTags = pgTable(
  'registry_tags',
  {
    id: serial('id').primaryKey(),
    repositoryId: repositoryId(),
    artifactId: integer('artifact_id')
      .notNull()
      .references(() => registryArtifacts.id, { onDelete: 'cascade' }),
    name: text('name').notNull(),
    pushedAt: instant('pushed_at').notNull(),
    pulledAt: instant('pulled_at'),
    seenAt: instant('seen_at').notNull(),
  },
  (t) => [
    uniqueIndex('registry_tags_name').on(t.repositoryId, t.name),
    index('registry_tags_artifact').on(t.artifactId),
  ],
);

/** Each blob once per registry; the sum of their sizes is `storage_used`. */
export const registryBlobs = pgTable(
  'registry_blobs',
  {
    registryId: registryId(),
    digest: text('digest').notNull(),
    size: bigint('size', { mode: 'number' }).notNull(),
    seenAt: instant('seen_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.registryId, t.digest] })],
);

/** Events that were recorded: the host repeats an event until it gets the response. Removals, too (store.ts). */
export const registryEvents = pgTable(
  'registry_events',
  { id: text('id').primaryKey(), seenAt: instant('seen_at').notNull() },
  (t) => [index('registry_events_seen').on(t.seenAt)],
);
