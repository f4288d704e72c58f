/**
 * Sends user actions to their subscribers. The rows to send are written in the transaction of the action
 * (audit/audit.ts), so a change does nothing else for them, and nothing is lost with a process.
 *
 * Every process scans for subscriptions with due deliveries and leases some of them. A subscription has one lease at a
 * time and its own loop, so a slow receiver delays itself only.
 *
 * Failure modes: a process that dies leaves its leases, which expire; what it had sent but not recorded is sent again under
 * the same id. After a failure, the next call to the receiver waits for up to a minute, and the same action for up
 * to an hour. `Retry-After` of a response can extend both, up to an hour.
 */
import { presentable, type WebhookDriver } from '../../drivers/delivery.ts';
import { DriverError } from '../../errors/driver-error.ts';
import { type Clock, withZone } from '../../platform/clock.ts';
import { type Db, transaction } from '../../platform/db.ts';
import type { Logger } from '../../platform/log.ts';
import { expiresAfterMs, maxDelayMs, retryDelayMs } from '../notifications/desired.ts';
import { toUserAction } from './response.ts';
import * as store from './store.ts';
import type { Attempted, ActionEntry, SubscriptionRow } from './store.ts';

interface UserActionDeliveriesDeps {
  db: Db;
  /** The time of actions; in development mode clients move it. */
  clock: Clock;
  /** The time of attempts. */
  hostClock: Clock;
  log: Logger;
  driver: WebhookDriver;
  /** The value of the header of a subscription. @throws EncryptionError */
  valueOf(subscription: SubscriptionRow): string;
  /** Called for every call, for metrics. */
  onAttempt(channel: 'user_actions', outcome: string): void;
}

/** Subscriptions that a process serves at the same time. They wait for receivers most of the time. */
const maxSubscriptions = 64;
/** Calls to one receiver at the same time. */
const batch = 8;
/** More than a call may take. */
const leaseSeconds = 30;
const maxPauseSeconds = 60;

export type UserActionDeliveries = ReturnType<typeof createUserActionDeliveries>;

export function createUserActionDeliveries(deps: UserActionDeliveriesDeps) {
  const { db, log, driver } = deps;
  const running = new Map<number, Promise<void>>();
  const shutdown = new AbortController();

  /** Sends the oldest due actions. Returns the seconds until the next batch; null if no action is due. */
  const sendBatch = async (subscription: SubscriptionRow): Promise<number | null> => {
    const due = await store.findDue(db, subscription.id, batch);
    if (due.length === 0) return null;
    const ids = due.map(({ entryId }) => entryId);
    const entries = new Map((await store.findEntries(db, ids)).map((entry) => [entry.id, entry]));
    const secret = deps.valueOf(subscription);
    const results = await Promise.all(
      due.map(({ entryId, failures }) => {
        const entry = entries.get(entryId);
        return entry ? sendAction(deps, { subscription, entry, failures, secret }, shutdown.signal) : null;
      }),
    );
    const attempts = results.filter((result) => result !== null);
    const { pause, failures } = pauseAfter(attempts, subscription.failures);
    subscription.failures = failures;
    const exists = await transaction(db, async (tx) => {
      await store.recordAttempts(tx, subscription.id, attempts);
      // The row of a leased subscription has no failures (store.claimDue).
      return store.keepBusy(tx, subscription.id, pause || leaseSeconds, pause > 0 ? failures : 0);
    });
    return exists ? pause : maxPauseSeconds;
  };

  const serve = async (subscription: SubscriptionRow): Promise<void> => {
    let pause: number | null = 0;
    while (pause === 0 && !shutdown.signal.aborted) pause = await sendBatch(subscription);
    if (pause === null || pause === 0) await store.keepBusy(db, subscription.id, 0, subscription.failures);
  };

  return {
    /** Starts to serve the subscriptions that have due deliveries. Does not wait for the receivers. */
    async deliverDue(): Promise<void> {
      const free = maxSubscriptions - running.size;
      if (free <= 0 || shutdown.signal.aborted) return;
      // A process that only simulates calls must not take them from processes that make them.
      if (!driver.real && (await store.isRealElsewhere(db, 'webhook'))) return;
      for (const subscription of await store.claimDue(db, free, leaseSeconds)) {
        const serving = serve(subscription)
          .catch(async (error: unknown) => {
            const { aborted } = shutdown.signal;
            if (!aborted) log.error({ err: error, subscriptionId: subscription.id }, 'user actions failed');
            await store.keepBusy(db, subscription.id, aborted ? 0 : maxPauseSeconds, subscription.failures);
          })
          .catch(() => {})
          .finally(() => running.delete(subscription.id));
        running.set(subscription.id, serving);
      }
    },

    /** Resolves when no call is under way. */
    async idle(): Promise<void> {
      await Promise.all(running.values());
    },

    /** Interrupts the calls; another process makes them. */
    async stop(): Promise<void> {
      shutdown.abort(new Error('the process is stopping'));
      await Promise.all(running.values());
    },
  };
}

interface Call {
  subscription: SubscriptionRow;
  entry: ActionEntry;
  /** Failed attempts to send this entry. */
  failures: number;
  secret: string;
}

/** Makes one call. Null when the signal interrupts it: the others of the batch are recorded all the same. */
async function sendAction(
  { clock, hostClock, log, driver, onAttempt }: UserActionDeliveriesDeps,
  { subscription, entry, failures, secret }: Call,
  signal: AbortSignal,
): Promise<Attempted | null> {
  const action = toUserAction({ ...entry, acknowledged: false });
  const done = { entryId: entry.id, failures, delaySeconds: 0, askedSeconds: 0, attempt: null };
  const attemptOf = (answer: string) => ({ at: withZone(hostClock.now()), answer });
  // An entry without an official name.
  if (!action) return { ...done, state: 'skipped' };
  const headers = { [subscription.authHeaderName]: secret };
  const call = { id: action.id, url: subscription.url, secret, body: JSON.stringify(action), headers };
  try {
    const { answer } = await driver.send(call, signal);
    const state = driver.real ? 'delivered' : 'simulated';
    onAttempt('user_actions', state);
    return { ...done, state, attempt: attemptOf(answer) };
  } catch (error) {
    if (signal.aborted) return null;
    if (!(error instanceof DriverError)) throw error;
    const delayMs = retryDelayMs(failures + 1, error.minRetrySeconds);
    const expires = entry.at.getTime() + expiresAfterMs;
    const isFinal = !error.retryable || clock.now().getTime() + delayMs > expires;
    onAttempt('user_actions', isFinal ? 'failed' : 'retry');
    const answer = presentable(error.customerMessage);
    log.warn({ answer, subscriptionId: subscription.id, entryId: entry.id }, 'a user action was not accepted');
    return {
      ...{ entryId: entry.id, failures: failures + 1 },
      ...{ delaySeconds: delayMs / 1000, askedSeconds: error.minRetrySeconds },
      state: isFinal ? 'failed' : 'pending',
      attempt: attemptOf(answer),
    };
  }
}

/**
 * The seconds without calls to the receiver, and the failures of its subscription. With a pause, these are at least 1, because
 * a replay ends a pause only then.
 */
function pauseAfter(attempts: Attempted[], failuresBefore: number): { pause: number; failures: number } {
  // All calls were interrupted, or all actions skipped.
  if (attempts.every(({ state }) => state === 'skipped')) return { pause: 0, failures: failuresBefore };
  const asked = Math.min(Math.max(0, ...attempts.map(({ askedSeconds }) => askedSeconds)), maxDelayMs / 1000);
  if (!isReceiverAway(attempts)) return { pause: asked, failures: asked > 0 ? 1 : 0 };
  const failures = failuresBefore + 1;
  return { pause: Math.max(asked, Math.min(retryDelayMs(failures) / 1000, maxPauseSeconds)), failures };
}

/** Whether calls failed and none succeeded. */
function isReceiverAway(attempts: Attempted[]): boolean {
  const has = (...states: Attempted['state'][]) => attempts.some(({ state }) => states.includes(state));
  return has('pending', 'failed') && !has('delivered', 'simulated');
}
