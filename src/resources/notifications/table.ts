import { sql } from 'drizzle-orm';
import { index, integer, json, jsonb, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { instant, parentUuid } from '../../platform/columns.ts';
import { webhooks } from '../webhooks/table.ts';
import type { Attempt, Channel, DeliveryState, MessageBody, NotificationType } from './schema.ts';

/** All messages to clients, whether or not they have receivers. */
export const notifications = pgTable(
  'notifications',
  {
    /** Receivers detect repetitions by it. */
    id: uuid('id').primaryKey(),
    clientId: integer('client_id').notNull(),
    /** Such as `quota_threshold`. */
    type: text('type').notNull().$type<NotificationType>(),
    subject: text('subject').notNull(),
    /** For people. */
    body: json('body').notNull().$type<MessageBody>(),
    /** For programs; `json` keeps the order of its fields. */
    data: json('data').notNull().$type<Record<string, unknown>>(),
    createdAt: instant('created_at').notNull(),
  },
  (t) => [index('notifications_client').on(t.clientId, t.createdAt, t.id)],
);

/** One row per message and receiver: the outbox. */
export const notificationDeliveries = pgTable(
  'notification_deliveries',
  {
    id: uuid('id').primaryKey(),
    notificationId: parentUuid('notification_id', () => notifications.id),
    channel: text('channel').notNull().$type<Channel>(),
    /** The e-mail address or URL at the time of the message. */
    target: text('target').notNull(),
    /** Null for e-mail, and when the webhook was deleted. */
    webhookId: uuid('webhook_id').references(() => webhooks.id, { onDelete: 'set null' }),
    state: text('state').notNull().$type<DeliveryState>(),
    /** The latest attempts, oldest first. */
    attempts: jsonb('attempts').notNull().$type<Attempt[]>().default([]),
    attemptCount: integer('attempt_count').notNull().default(0),
    /** Failed attempts since the last replay, which determine the backoff. */
    failures: integer('failures').notNull().default(0),
    /** Null when the delivery has ended. */
    nextAttemptAt: instant('next_attempt_at'),
    /** The delivery fails when the next attempt would be after this time. */
    giveUpAt: instant('give_up_at').notNull(),
    endedAt: instant('ended_at'),
  },
  (t) => [
    index('notification_deliveries_notification').on(t.notificationId),
    index('notification_deliveries_webhook').on(t.webhookId),
    index('notification_deliveries_pending').on(t.nextAttemptAt).where(sql`${t.state} = 'pending'`),
  ],
);
