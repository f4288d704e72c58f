/**
 * Makes one attempt to deliver a message. The job names a delivery; everything else is read from its row.
 *
 * Failure modes: a process that dies between the acceptance of the message and its record causes a second delivery with
 * the same id.
 */
import { type EmailDriver, presentable, type Receipt, type WebhookDriver } from '../../drivers/delivery.ts';
import { DriverError } from '../../errors/driver-error.ts';
import { type Clock, withZone } from '../../platform/clock.ts';
import { type Db, transaction } from '../../platform/db.ts';
import { isUnavailable } from '../../platform/db-errors.ts';
import type { Logger } from '../../platform/log.ts';
import { emailParts, retryDelayMs, webhookBody } from './desired.ts';
import type { Channel } from './schema.ts';
import * as store from './store.ts';
import type { DeliveryRow, NotificationRow } from './store.ts';

interface DeliveriesDeps {
  db: Db;
  clock: Clock;
  log: Logger;
  drivers: { email: EmailDriver; webhook: WebhookDriver };
  /** The URL of a webhook and the secret that signs its calls; null when the webhook was deleted. */
  receiverOf(webhookId: string): Promise<{ url: string; secret: string } | null>;
  /** Called for every attempt, for metrics. */
  onAttempt(channel: Channel, outcome: Outcome['state']): void;
}

interface Outcome {
  state: 'delivered' | 'simulated' | 'retry' | 'failed';
  answer: string;
  /** The receiver asked for this wait. */
  askedSeconds?: number;
}

const realDrivers: Record<Channel, string> = { email: 'smtp', webhook: 'webhook' };
const keptAttempts = 50;
/** After this delay the job of an attempt counts as lost. */
const lateMs = 120_000;

export type Deliveries = ReturnType<typeof createDeliveries>;

export function createDeliveries(deps: DeliveriesDeps) {
  const { db, clock, drivers } = deps;

  const send = async (
    { channel, target, webhookId }: DeliveryRow,
    notification: NotificationRow,
    signal: AbortSignal,
  ): Promise<Receipt> => {
    const { id, subject, clientId } = notification;
    if (channel === 'email') {
      if (!(await store.hasAddress(db, clientId, target))) throw permanentError('the address was removed');
      return drivers.email.send({ id, to: target, subject, ...emailParts(notification) }, signal);
    }
    // The webhook may have changed since the message.
    const receiver = webhookId && (await deps.receiverOf(webhookId));
    if (!receiver) throw permanentError('the webhook was deleted');
    return drivers.webhook.send({ id, ...receiver, body: webhookBody(notification) }, signal);
  };

  const attempt = async (
    delivery: DeliveryRow,
    notification: NotificationRow,
    signal: AbortSignal,
  ): Promise<Outcome> => {
    try {
      const { answer } = await send(delivery, notification, signal);
      return { state: drivers[delivery.channel].real ? 'delivered' : 'simulated', answer };
    } catch (error) {
      // This process is stopping: another one makes the attempt, and this one does not count.
      if (signal.aborted) throw error;
      if (!(error instanceof DriverError)) {
        if (isUnavailable(error)) throw error;
        deps.log.error({ err: error, deliveryId: delivery.id }, 'a delivery failed');
        return { state: 'retry', answer: 'internal error; see the server log' };
      }
      deps.log.warn({ err: error, deliveryId: delivery.id }, 'a message was not accepted');
      const { retryable, minRetrySeconds: askedSeconds } = error;
      return { state: retryable ? 'retry' : 'failed', answer: presentable(error.customerMessage), askedSeconds };
    }
  };

  const record = (id: string, { state, answer, askedSeconds }: Outcome): Promise<void> =>
    transaction(db, async (tx) => {
      const row = await store.lock(tx, id);
      if (row?.state !== 'pending') return;
      const now = clock.now();
      const failures = row.failures + (state === 'retry' ? 1 : 0);
      const delayMs = retryDelayMs(failures, askedSeconds);
      const next = new Date(now.getTime() + delayMs);
      const ended = state === 'retry' && next > row.giveUpAt ? 'failed' : state;
      await store.update(tx, id, {
        attempts: [...row.attempts, { at: withZone(now), answer }].slice(-keptAttempts),
        attemptCount: row.attemptCount + 1,
        failures,
        ...(ended === 'retry' ? { nextAttemptAt: next } : { state: ended, nextAttemptAt: null, endedAt: now }),
      });
      if (ended === 'retry') await store.requestAttempts(tx, [id], delayMs / 1000);
    });

  return {
    /** Makes an attempt, unless the delivery has ended. @throws when it must be repeated for a reason other than the receiver */
    async deliver(id: string, signal: AbortSignal): Promise<void> {
      const found = await store.findWithNotification(db, id);
      if (found?.delivery.state !== 'pending') return;
      const { channel } = found.delivery;
      // A process without a mail server must not take messages from processes that have one.
      if (!drivers[channel].real && (await store.isRealElsewhere(db, realDrivers[channel]))) {
        throw new Error(`another process sends by ${realDrivers[channel]}`);
      }
      const outcome = await attempt(found.delivery, found.notification, signal);
      deps.onAttempt(channel, outcome.state);
      await record(id, outcome);
    },

    /** Requests attempts whose job is lost, which only a database failure can cause. */
    async requeueLost(): Promise<void> {
      await store.requestAttempts(db, await store.findWithoutJob(db, new Date(clock.now().getTime() - lateMs)));
    },
  };
}

function permanentError(message: string): DriverError {
  return new DriverError(message, { customerMessage: message, retryable: false });
}
