/**
 * Notifications: messages to clients. A message is stored and listed even if the client has no receiver.
 *
 * Invariant: a message and its deliveries are written in the transaction of the event (the outbox), each delivery with a
 * job of its own, so that no crash loses a message.
 */
import { randomUUID } from 'node:crypto';
import type { Actor, RequestContext } from '../../authz/actor.ts';
import { ClientError, notFound } from '../../errors/catalogue.ts';
import { withZone } from '../../platform/clock.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { Clients } from '../clients/service.ts';
import { type Collection, requireFound, type ServiceDeps, toCollection } from '../service-kit.ts';
import type { Visible } from '../store-kit.ts';
import { expiresAfterMs } from './desired.ts';
import type { Delivery, ListNotifications, MessageBody, Notification, NotificationType } from './schema.ts';
import * as store from './store.ts';
import type { DeliveryRow, NotificationView } from './store.ts';

/** A message from any part of Cloudyard to a client. */
export interface Message {
  clientId: number;
  /** For programs. */
  type: NotificationType;
  /** One line. */
  subject: string;
  /** For people. */
  body: MessageBody;
  /** For programs: the `data` of a webhook's body. */
  data: Record<string, unknown>;
}

interface NotificationsDeps extends Pick<ServiceDeps, 'db' | 'clock' | 'idempotency'> {
  clients: Clients;
}

export type Notifications = ReturnType<typeof createNotifications>;

export function createNotifications(deps: NotificationsDeps) {
  const { db, clock } = deps;

  const get = async (on: Db | Tx, visible: Visible, id: string): Promise<Notification> =>
    toResponse(requireFound(await store.find(on, visible, id), 'notification', id));

  const issue = async (tx: Tx, message: Message): Promise<string> => {
    const id = randomUUID();
    const now = clock.now();
    await store.insert(tx, { id, ...message, createdAt: now });
    const { emails, webhooks } = await store.findReceivers(tx, message.clientId);
    const due = { notificationId: id, nextAttemptAt: now, giveUpAt: new Date(now.getTime() + expiresAfterMs) };
    const receivers = [
      ...emails.map((target) => ({ channel: 'email' as const, target, webhookId: null })),
      ...webhooks.map(({ id, url }) => ({ channel: 'webhook' as const, target: url, webhookId: id })),
    ];
    const deliveries = receivers.map((receiver) => ({ id: randomUUID(), ...due, ...receiver }));
    await store.insertDeliveries(tx, deliveries);
    await store.requestAttempts(
      tx,
      deliveries.map((delivery) => delivery.id),
    );
    return id;
  };

  return {
    get: (actor: Actor, clientId: number, id: string) => get(db, visibleTo(actor, clientId), id),

    async list(actor: Actor, clientId: number, filter: ListNotifications): Promise<Collection<Notification>> {
      await deps.clients.require(clientId);
      return toCollection(await store.list(db, visibleTo(actor, clientId), filter), toResponse);
    },

    /** Writes a message, and a delivery for each current address and webhook of the client. Returns its id. */
    issue,

    /** Issues a message unless one of its type was created after `since`. Concurrent calls of all processes wait for each other. */
    async issueOnce(tx: Tx, message: Message, since: Date): Promise<void> {
      if (!(await store.wasIssued(tx, message, since))) await issue(tx, message);
    },

    /** Sends the message again under the same id, in any state of the delivery. */
    async replay(context: RequestContext, clientId: number, id: string, deliveryId: string): Promise<Notification> {
      return deps.idempotency.auditedTransaction(db, context, async (tx) => {
        const visible = visibleTo(context.actor, clientId);
        const notification = requireFound(await store.find(tx, visible, id), 'notification', id);
        const delivery = await store.lock(tx, deliveryId);
        if (delivery?.notificationId !== notification.id) throw notFound('delivery', deliveryId);
        if (delivery.channel === 'webhook' && delivery.webhookId === null) {
          throw new ClientError('Conflict', 'the webhook was deleted');
        }
        if (delivery.channel === 'email' && !(await store.hasAddress(tx, clientId, delivery.target))) {
          throw new ClientError('Conflict', 'the address was removed');
        }
        const now = clock.now();
        await store.update(tx, deliveryId, {
          state: 'pending',
          failures: 0,
          nextAttemptAt: now,
          giveUpAt: new Date(now.getTime() + expiresAfterMs),
          endedAt: null,
        });
        await store.requestAttempts(tx, [deliveryId]);
        return get(tx, visible, id);
      });
    },
  };
}

/** A token that is limited to projects does not see messages about other projects. */
function visibleTo({ projectIds }: Actor, clientId: number): Visible {
  return { clientId, projectIds };
}

function toResponse(row: NotificationView): Notification {
  return {
    id: row.id,
    type: row.type,
    client_id: row.clientId,
    created_at: withZone(row.createdAt),
    subject: row.subject,
    data: row.data,
    deliveries: row.deliveries.map(toDelivery),
  };
}

function toDelivery(row: DeliveryRow): Delivery {
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
