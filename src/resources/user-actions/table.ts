import { sql } from 'drizzle-orm';
import { bigint, index, integer, jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { auditEntries } from '../../audit/table.ts';
import { bytes, instant } from '../../platform/columns.ts';
import { clientId } from '../clients/table.ts';
import type { Attempt } from '../notifications/schema.ts';

/** URLs that receive the user actions of a client: at most one for each client. */
export const userActionSubscriptions = pgTable('user_action_subscriptions', {
  id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
  clientId: clientId().unique(),
  url: text('url').notNull(),
  authHeaderName: text('auth_header_name').notNull(),
  /** Encrypted for `user_action_subscription:<id>` (platform/encryption.ts); it also signs the calls. */
  authHeaderValue: bytes('auth_header_value').notNull(),
  createdAt: instant('created_at').notNull(),
  /** Calls without a success since the last one, which determine the backoff. */
  failures: integer('failures').notNull().default(0),
  /** Until this time no call is made: another process is at work, or the receiver failed. */
  busyUntil: instant('busy_until'),
});

/** `simulated`: a simulated driver accepted it. `skipped`: no user action. `failed`: not delivered, and not retried. */
export type UserActionDeliveryState = 'pending' | 'delivered' | 'simulated' | 'skipped' | 'failed';

/** The outbox: one row for each audit entry of a client with a subscription, written in the transaction of the entry. */
export const userActionDeliveries = pgTable(
  'user_action_deliveries',
  {
    entryId: bigint('entry_id', { mode: 'number' })
      .notNull()
      .references(() => auditEntries.id, { onDelete: 'cascade' }),
    subscriptionId: integer('subscription_id')
      .notNull()
      .references(() => userActionSubscriptions.id, { onDelete: 'cascade' }),
    state: text('state').notNull().$type<UserActionDeliveryState>().default('pending'),
    failures: integer('failures').notNull().default(0),
    nextAttemptAt: instant('next_attempt_at').notNull(),
    /** The latest attempts, oldest first. */
    attempts: jsonb('attempts').notNull().$type<Attempt[]>().default([]),
  },
  (t) => [
    primaryKey({ columns: [t.entryId, t.subscriptionId] }),
    index('user_action_deliveries_pending')
      .on(t.subscriptionId, t.nextAttemptAt, t.entryId)
      .where(sql`${t.state} = 'pending'`),
  ],
);
