/**
 * Notifications: what a client is told. A message and its deliveries are written in the transaction of what they tell of
 * (the outbox), each delivery with a job of its own, so nothing that happened goes untold, whatever dies. It is kept and
 * shown also where the client has neither an address nor a webhook.
 */
import { randomUUID } from 'node:crypto';
import type { RequestContext } from '../../authz/actor.ts';
import { ClientError, notFound } from '../../errors/catalogue.ts';
import type { Idempotency } from '../../idempotency/idempotency.ts';
import { withZone } from '../../platform/clock.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { Clients } from '../clients/service.ts';
import { givenUpAfterMs } from './desired.ts';
import type { Delivery, ListNotifications, MessageBody, Notification, NotificationCollection } from './schema.ts';
import * as store from './store.ts';
import type { DeliveryRow, NotificationRow } from './store.ts';

/** What any part of Cloudyard has to tell a client. */
export interface Message {
  clientId: number;
  /** What kind of message, for programs: `quota_threshold`. */
  type: string;
  /** One line. */
  subject: string;
  /** For people. */
  body: MessageBody;
  /** For programs: the `data` of a webhook's body. */
  data: Record<string, unknown>;
}

export interface NotificationsDeps {
  db: Db;
  clock: Clock;
  idempotency: Idempotency;
  clients: Clients;
}

export type Notifications = ReturnType<typeof createNotifications>;

export function createNotifications(deps: NotificationsDeps) {
  const { db, clock } = deps;

  const presented = async (on: Db | Tx, rows: NotificationRow[]): Promise<Notification[]> => {
    const deliveries = await store.deliveriesOf(
      on,
      rows.map(({ id }) => id),
    );
    return rows.map((row) => presentNotification(row, deliveries));
  };

  const get = async (on: Db | Tx, clientId: number, id: string): Promise<Notification> => {
    const row = await store.find(on, clientId, id);
    if (!row) throw notFound('notification', id);
    return (await presented(on, [row]))[0]!;
  };

  return {
    get: (clientId: number, id: string) => get(db, clientId, id),

    async list(clientId: number, filter: ListNotifications): Promise<NotificationCollection> {
      await deps.clients.require(clientId);
      const { count, rows } = await store.list(db, clientId, filter);
      return { count, results: await presented(db, rows) };
    },

    /** Writes a message, and a delivery for each address and webhook that the client has now. Returns its id. */
    async issue(tx: Tx, message: Message): Promise<string> {
      const id = randomUUID();
      const now = clock.now();
      await store.insert(tx, { id, ...message, createdAt: now });
      const { emails, webhooks } = await store.receivers(tx, message.clientId);
      const pending = {
        notificationId: id,
        state: 'pending' as const,
        nextAttemptAt: now,
        giveUpAt: new Date(now.getTime() + givenUpAfterMs),
      };
      const deliveries = [
        ...emails.map((target) => ({ id: randomUUID(), ...pending, channel: 'email' as const, target })),
        ...webhooks.map((webhook) => ({
          id: randomUUID(),
          ...pending,
          channel: 'webhook' as const,
          target: webhook.url,
          webhookId: webhook.id,
        })),
      ];
      await store.insertDeliveries(tx, deliveries);
      await store.requestAttempts(
        tx,
        deliveries.map((delivery) => delivery.id),
      );
      return id;
    },

    /** Sends it once more, under the same id, whatever became of it before. */
    async replay(context: RequestContext, clientId: number, id: string, deliveryId: string): Promise<Notification> {
      return deps.idempotency.auditedTransaction(db, context, async (tx) => {
        const notification = await store.find(tx, clientId, id);
        if (!notification) throw notFound('notification', id);
        const delivery = await store.lock(tx, deliveryId);
        if (delivery?.notificationId !== notification.id) throw notFound('delivery', deliveryId);
        if (delivery.channel === 'webhook' && delivery.webhookId === null) {
          throw new ClientError('Conflict', 'the webhook was deleted');
        }
        const now = clock.now();
        await store.update(tx, deliveryId, {
          state: 'pending',
          failures: 0,
          nextAttemptAt: now,
          giveUpAt: new Date(now.getTime() + givenUpAfterMs),
          endedAt: null,
        });
        await store.requestAttempts(tx, [deliveryId]);
        return get(tx, clientId, id);
      });
    },
  };
}

function presentNotification(row: NotificationRow, deliveries: DeliveryRow[]): Notification {
  const mine = deliveries.filter(({ notificationId }) => notificationId === row.id);
  return {
    id: row.id,
    type: row.type,
    client_id: row.clientId,
    created_at: withZone(row.createdAt),
    subject: row.subject,
    data: row.data,
    deliveries: mine.map(presentDelivery),
  };
}

function presentDelivery(row: DeliveryRow): Delivery {
  return {
    id: row.id,
    channel: row.channel,
    target: row.channel === 'webhook' ? new URL(row.target).origin : row.target,
    webhook_id: row.webhookId,
    state: row.state,
    attempt_count: row.attemptCount,
    attempts: row.attempts,
    next_attempt_at: withZone(row.nextAttemptAt),
    ended_at: withZone(row.endedAt),
  };
}
