/**
 * Makes one attempt to deliver. Level-triggered like any reconcile: a job names a delivery, and everything else is read
 * from its row. One that was killed after the message was taken, and before that was written down, sends it again, under
 * the same id.
 */
import type { Logger } from 'pino';
import { presentable } from '../../drivers/delivery.ts';
import type { EmailDriver, Receipt, WebhookDriver } from '../../drivers/delivery.ts';
import { DriverError } from '../../errors/driver-error.ts';
import { withZone } from '../../platform/clock.ts';
import type { Clock } from '../../platform/clock.ts';
import { isUnavailable, transaction } from '../../platform/db.ts';
import type { Db } from '../../platform/db.ts';
import { emailParts, waitMs, webhookBody } from './desired.ts';
import type { Channel } from './schema.ts';
import * as store from './store.ts';
import type { DeliveryRow, NotificationRow } from './store.ts';

export interface DeliveryDrivers {
  email: EmailDriver;
  webhook: WebhookDriver;
}

export interface DeliveriesDeps {
  db: Db;
  clock: Clock;
  log: Logger;
  drivers: DeliveryDrivers;
  /** What the calls of a webhook are signed with; null when it is gone. */
  secretOf(webhookId: string): Promise<string | null>;
  /** Hears of every attempt, for metrics. */
  onAttempt(channel: Channel, outcome: Outcome['state']): void;
}

interface Outcome {
  state: 'delivered' | 'simulated' | 'retry' | 'failed';
  answer: string;
}

const realDrivers: Record<Channel, string> = { email: 'smtp', webhook: 'webhook' };
const keptAttempts = 50;
/** How late an attempt may be before its job is taken for lost. */
const lateMs = 120_000;

export type Deliveries = ReturnType<typeof createDeliveries>;

export function createDeliveries(deps: DeliveriesDeps) {
  const { db, clock, drivers } = deps;

  const send = async (
    { channel, target, webhookId }: DeliveryRow,
    notification: NotificationRow,
    signal: AbortSignal,
  ): Promise<Receipt> => {
    const { id, subject } = notification;
    if (channel === 'email') {
      return drivers.email.send({ id, to: target, subject, ...emailParts(notification) }, signal);
    }
    const secret = webhookId && (await deps.secretOf(webhookId));
    if (secret === null) throw refusedForGood('the webhook was deleted');
    return drivers.webhook.send({ id, url: target, secret, body: webhookBody(notification) }, signal);
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
      // This process is stopping: somebody else makes the attempt, and it does not count.
      if (signal.aborted) throw error;
      if (!(error instanceof DriverError)) {
        if (isUnavailable(error)) throw error;
        deps.log.error({ err: error, deliveryId: delivery.id }, 'a delivery failed');
        return { state: 'retry', answer: 'internal error; see the server log' };
      }
      deps.log.warn({ err: error, deliveryId: delivery.id }, 'a message was not taken');
      return { state: error.retryable ? 'retry' : 'failed', answer: presentable(error.customerMessage) };
    }
  };

  const record = (id: string, { state, answer }: Outcome): Promise<void> =>
    transaction(db, async (tx) => {
      const row = await store.lock(tx, id);
      if (row?.state !== 'pending') return;
      const now = clock.now();
      const failures = row.failures + (state === 'retry' ? 1 : 0);
      const next = new Date(now.getTime() + waitMs(failures));
      const ended = state === 'retry' && next > row.giveUpAt ? 'failed' : state;
      await store.update(tx, id, {
        attempts: [...row.attempts, { at: withZone(now), answer }].slice(-keptAttempts),
        attemptCount: row.attemptCount + 1,
        failures,
        ...(ended === 'retry' ? { nextAttemptAt: next } : { state: ended, nextAttemptAt: null, endedAt: now }),
      });
      if (ended === 'retry') await store.requestAttempts(tx, [id], waitMs(failures) / 1000);
    });

  return {
    /** Makes an attempt, unless the delivery has ended. @throws when it should be made again for no fault of the receiver */
    async deliver(id: string, signal: AbortSignal): Promise<void> {
      const found = await store.load(db, id);
      if (found?.delivery.state !== 'pending') return;
      const { channel } = found.delivery;
      // A process that was not told of the mail server must not take a message from those that were.
      if (!drivers[channel].real && (await store.isRealElsewhere(db, realDrivers[channel]))) {
        throw new Error(`another process sends by ${realDrivers[channel]}`);
      }
      const outcome = await attempt(found.delivery, found.notification, signal);
      deps.onAttempt(channel, outcome.state);
      await record(id, outcome);
    },

    /** Asks anew for attempts whose job is not there: only a broken database can have lost one. */
    async requeueLost(): Promise<void> {
      await store.requestAttempts(db, await store.withoutJob(db, new Date(clock.now().getTime() - lateMs)));
    },
  };
}

function refusedForGood(message: string): DriverError {
  return new DriverError(message, { customerMessage: message, retryable: false });
}
