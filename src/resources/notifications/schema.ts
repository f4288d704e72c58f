/** Responses about notifications. */
import { type Static, Type } from 'typebox';
import { Collection, Component, DateTime, Described, Nullable, OrderBy, Paging, Uuid } from '../../http/shapes.ts';

const Channel = Type.Enum(['email', 'webhook'], { description: '`email` or `webhook`' });
export type Channel = Static<typeof Channel>;

/** `simulated`: a simulated driver accepted it. `failed`: not delivered, and not retried. */
const deliveryStates = ['pending', 'delivered', 'simulated', 'failed'] as const;
export type DeliveryState = (typeof deliveryStates)[number];
export const State = Type.Enum([...deliveryStates], {
  title: 'DeliveryState',
  description: '`pending`, `delivered`, `simulated` (accepted by a simulated driver) or `failed` (not retried)',
});

/** Types of messages. A new one is a line here; the console offers it in its filter. */
const notificationTypes = [
  'backup_failed',
  'backup_late',
  'host_unhealthy',
  'lifecycle_policy_run_failed',
  'lifecycle_policy_run_missed',
  'quota_request_approved',
  'quota_request_declined',
  'quota_threshold',
] as const;
export type NotificationType = (typeof notificationTypes)[number];
const Kind = Type.Enum([...notificationTypes], { title: 'NotificationType', description: 'Type of a notification' });

/** The text of a message: paragraphs, and a table of figures if there is one. */
export interface MessageBody {
  paragraphs: string[];
  figures?: { columns: string[]; rows: string[][] };
}

export const ListNotifications = Type.Object({
  ...Paging(100),
  type: Type.Optional(Described(Kind, 'Only notifications of this type')),
  webhook_id: Type.Optional(Described(Uuid, 'Only notifications that were sent to this webhook')),
  delivery_state: Type.Optional(
    Type.Enum([...deliveryStates], { description: 'Only notifications with a delivery in this state' }),
  ),
  order_by: OrderBy(['created_at'], 'created_at.desc'),
});
export type ListNotifications = Static<typeof ListNotifications>;

export const Attempt = Component('DeliveryAttempt', {
  at: Described(DateTime, 'When the delivery was attempted'),
  answer: Type.String({ description: 'The response of the receiver, or why it was not reached' }),
});
export type Attempt = Static<typeof Attempt>;

export const Delivery = Component('Delivery', {
  id: Described(Uuid, 'ID of the delivery'),
  channel: Channel,
  target: Type.String({
    description: 'E-mail address, or host of the webhook; the path of a webhook may be secret and is omitted',
  }),
  webhook_id: Described(Nullable(Uuid), 'ID of the webhook; null for e-mail'),
  state: State,
  attempt_count: Type.Integer({ description: 'Number of attempts' }),
  attempts: Type.Array(Attempt, { description: 'The last attempts, oldest first' }),
  next_attempt_at: Described(Nullable(DateTime), 'When the next attempt is due; null when there is none'),
  ended_at: Described(Nullable(DateTime), 'When the delivery succeeded or failed; null until then'),
});
export type Delivery = Static<typeof Delivery>;

export const Notification = Component('Notification', {
  id: Described(Uuid, 'ID of the notification'),
  type: Kind,
  client_id: Type.Integer({ description: 'ID of the client' }),
  created_at: Described(DateTime, 'When the notification was created'),
  subject: Type.String({ description: 'Subject line' }),
  data: Type.Unsafe<Record<string, unknown>>({
    type: 'object',
    additionalProperties: true,
    description: 'Machine-readable content; it depends on the type',
  }),
  deliveries: Type.Array(Delivery, { description: 'One delivery for each receiver' }),
});
export type Notification = Static<typeof Notification>;

export const NotificationCollection = Collection(Notification);
