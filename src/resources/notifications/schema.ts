import { Type } from 'typebox';
import type { Static } from 'typebox';
import { Collection, IntegerId, Nullable, Paging, Uuid } from '../../http/shapes.ts';

export const channels = ['email', 'webhook'] as const;
export type Channel = (typeof channels)[number];

/** `simulated`: a driver that only pretends took it. `failed`: nobody took it, and it is not tried any more. */
export const deliveryStates = ['pending', 'delivered', 'simulated', 'failed'] as const;
export type DeliveryState = (typeof deliveryStates)[number];

/** What a message says to people: sentences, and a table of figures if there is one. */
export interface MessageBody {
  paragraphs: string[];
  figures?: { columns: string[]; rows: string[][] };
}

export const ClientPath = Type.Object({ client_id: IntegerId });
export const NotificationPath = Type.Object({ client_id: IntegerId, notification_id: Uuid });
export const DeliveryPath = Type.Object({ client_id: IntegerId, notification_id: Uuid, delivery_id: Uuid });
export const ListNotifications = Type.Object(Paging(100));
export type ListNotifications = Static<typeof ListNotifications>;

const Time = Type.String({ format: 'date-time' });

const Attempt = Type.Object({
  at: Time,
  answer: Type.String({ description: 'What the other side said, or why it was not reached' }),
});
export type Attempt = Static<typeof Attempt>;

export const Delivery = Type.Object({
  id: Uuid,
  channel: Type.Enum([...channels]),
  target: Type.String({
    description: 'The e-mail address, or where the webhook is; its path may be a secret and is not shown',
  }),
  webhook_id: Nullable(Uuid),
  state: Type.Enum([...deliveryStates]),
  attempt_count: Type.Integer(),
  attempts: Type.Array(Attempt, { description: 'The last ones, oldest first' }),
  next_attempt_at: Nullable(Time),
  ended_at: Nullable(Time),
});
export type Delivery = Static<typeof Delivery>;

export const Notification = Type.Object({
  id: Uuid,
  type: Type.String(),
  client_id: Type.Integer(),
  created_at: Time,
  subject: Type.String(),
  data: Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true }),
  deliveries: Type.Array(Delivery),
});
export type Notification = Static<typeof Notification>;

export const NotificationCollection = Collection(Notification);
export type NotificationCollection = Static<typeof NotificationCollection>;
