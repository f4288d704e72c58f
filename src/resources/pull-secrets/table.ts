import { pgTable, text, unique, uuid } from 'drizzle-orm/pg-core';
import { bytes, instant } from '../../platform/columns.ts';
import { ofProject } from '../projects/table.ts';

export const pullSecrets = pgTable(
  'pull_secrets',
  {
    id: uuid('id').primaryKey(),
    ...ofProject,
    /** As in the request, because clients compare it with their configuration. */
    registry: text('registry').notNull(),
    login: text('login').notNull(),
    /** Encrypted for `pull-secret:<id>` (platform/encryption.ts). */
    password: bytes('password').notNull(),
    updatedAt: instant('updated_at').notNull(),
  },
  (t) => [unique('pull_secrets_name').on(t.projectId, t.regionId, t.name)],
);
