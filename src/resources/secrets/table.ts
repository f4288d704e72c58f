import { index, integer, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { bytes, instant } from '../../platform/columns.ts';
import { projects } from '../projects/table.ts';
import type { SecretKind, SecretType } from './schema.ts';

/** Everything but `payload` is public: a list shows it, or may come to show it. */
export const secrets = pgTable(
  'secrets',
  {
    id: uuid('id').primaryKey(),
    projectId: integer('project_id')
      .notNull()
      .references(() => projects.id),
    regionId: integer('region_id').notNull(),
    name: text('name').notNull(),
    secretType: text('secret_type').notNull().$type<SecretType>(),
    /** What a load balancer can use it as; null: as nothing. */
    kind: text('kind').$type<SecretKind>(),
    /** Encrypted for `secret:<id>` (platform/encryption.ts): PEM for what has a kind, otherwise the bytes as given. */
    payload: bytes('payload').notNull(),
    contentType: text('content_type').notNull(),
    algorithm: text('algorithm'),
    bitLength: integer('bit_length'),
    mode: text('mode'),
    /** As the customer set it. */
    expiration: instant('expiration'),
    /** Until when the certificates or revocation lists in it are good. */
    notAfter: instant('not_after'),
    /** Names that the certificate is for, for information. */
    subjectNames: text('subject_names').array().notNull(),
    creatorTaskId: uuid('creator_task_id').notNull(),
    createdAt: instant('created_at').notNull(),
  },
  (t) => [index('secrets_project').on(t.projectId, t.regionId, t.createdAt, t.id)],
);
