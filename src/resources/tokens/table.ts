import { sql } from 'drizzle-orm';
import { index, integer, pgTable, text } from 'drizzle-orm/pg-core';
import { bytes, instant } from '../../platform/columns.ts';
import type { Role } from '../../authz/actor.ts';
import { clientId } from '../clients/table.ts';

export const tokens = pgTable(
  'tokens',
  {
    id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
    /** The part of the token before the `$`. */
    keyId: text('key_id').notNull().unique(),
    /** SHA-256 of the part after it. */
    secretHash: bytes('secret_hash').notNull(),
    clientId: clientId(),
    name: text('name').notNull(),
    /** Issuer and subject of a person who signed in with OpenID Connect; null: a token that was created by hand. */
    identity: text('identity'),
    role: text('role').notNull().$type<Role>(),
    /** Null: all projects of the client. */
    projectIds: integer('project_ids').array(),
    createdAt: instant('created_at').notNull(),
    /** Written at most once a minute; null: never used. */
    lastUsedAt: instant('last_used_at'),
    expiresAt: instant('expires_at'),
    revokedAt: instant('revoked_at'),
  },
  (t) => [
    index('tokens_client').on(t.clientId).where(sql`${t.revokedAt} is null and ${t.identity} is null`),
    // For the list of a client: its revoked tokens stay.
    index('tokens_client_id').on(t.clientId, t.id),
    index('tokens_identity').on(t.identity).where(sql`${t.identity} is not null`),
  ],
);
