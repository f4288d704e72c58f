import { index, integer, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { bytes, instant } from '../../platform/columns.ts';
import { ofProject } from '../projects/table.ts';
import type { SecretKind, SecretType } from './schema.ts';

/** Only `payload` is confidential: responses may contain all other columns. */
export const secrets = pgTable(
  'secrets',
  {
    id: uuid('id').primaryKey(),
    ...ofProject,
    secretType: text('secret_type').notNull().$type<SecretType>(),
    /** How load balancers can use it; null: not at all. */
    kind: text('kind').$type<SecretKind>(),
    /** Encrypted for `secret:<id>` (platform/encryption.ts): PEM if it has a kind, otherwise the bytes of the request. */
    payload: bytes('payload').notNull(),
    contentType: text('content_type').notNull(),
    algorithm: text('algorithm'),
    bitLength: integer('bit_length'),
    mode: text('mode'),
    /** As the client set it. */
    expiration: instant('expiration'),
    /** When the first of its certificates or revocation lists expires. */
    notAfter: instant('not_after'),
    /** The names in the certificate, for the audit log only. */
    subjectNames: text('subject_names').array().notNull(),
    creatorTaskId: uuid('creator_task_id').notNull(),
    createdAt: instant('created_at').notNull(),
  },
  (t) => [index('secrets_project').on(t.projectId, t.regionId, t.createdAt, t.id)],
);
