import { sql } from 'drizzle-orm';
import { index, integer, json, jsonb, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { instant } from '../../platform/columns.ts';
import { webhooks } from '../webhooks/table.ts';
import type { Attempt, Channel, DeliveryState, MessageBody } from './schema.ts';

/** Every message that was ever issued to a client, whether or not it could be sent to anybody. */
export const notifications = pgTable(
  'notifications',
  {
    /** Receivers know a repetition by it. */
    id: uuid('id').primaryKey(),
    clientId: integer('client_id').notNull(),
    /** What kind of message: `quota_threshold`, … */
    type: text('type').notNull(),
    subject: text('subject').notNull(),
    /** For people. */
    body: json('body').notNull().$type<MessageBody>(),
    /** For programs; `json` keeps the order of its fields. */
    data: json('data').notNull().$type<Record<string, unknown>>(),
    createdAt: instant('created_at').notNull(),
  },
  (t) => [index('notifications_client').on(t.clientId, t.createdAt, t.id)],
);

/** One row a message and receiver: the outbox. */
export const notificationDeliveries = pgTable(
  'notification_deliveries',
  {
    id: uuid('id').primaryKey(),
    notificationId: uuid('notification_id')
      .notNull()
      .references(() => notifications.id, { onDelete: 'cascade' }),
    channel: text('channel').notNull().$type<Channel>(),
    /** An e-mail address or a URL, as it was when the message was issued. */
    target: text('target').notNull(),
    /** Null for e-mail, and when the webhook was deleted. */
    webhookId: uuid('webhook_id').references(() => webhooks.id, { onDelete: 'set null' }),
    state: text('state').notNull().$type<DeliveryState>(),
    /** The last ones, oldest first. */
    attempts: jsonb('attempts').notNull().$type<Attempt[]>().default([]),
    attemptCount: integer('attempt_count').notNull().default(0),
    /** Failed ones since the last replay: what the backoff goes by. */
    failures: integer('failures').notNull().default(0),
    /** When it is tried (again); null once it has ended. */
    nextAttemptAt: instant('next_attempt_at'),
    /** No attempt is made after this. */
    giveUpAt: instant('give_up_at').notNull(),
    endedAt: instant('ended_at'),
  },
  (t) => [
    index('notification_deliveries_notification').on(t.notificationId),
    index('notification_deliveries_webhook').on(t.webhookId),
    index('notification_deliveries_pending').on(t.nextAttemptAt).where(sql`${t.state} = 'pending'`),
  ],
);
