/**
 * Notices schedules that do not run on time, and notifies their clients. Every process scans, because the usual reason is
 * that the worker of the region is gone.
 *
 * Invariant: a missed run is reported once, and a policy has at most one message in each window. What is missed meanwhile
 * is in the message after the window. A run that is on time makes none, so a recovery ends the messages.
 */
import type { Clock } from '../../../platform/clock.ts';
import { transaction } from '../../../platform/db.ts';
import type { Db } from '../../../platform/db.ts';
import type { Notifications } from '../../notifications/service.ts';
import { missedMessage } from './message.ts';
import * as store from './store.ts';

interface MissedRunsDeps {
  db: Db;
  clock: Clock;
  notifications: Pick<Notifications, 'issue'>;
  /** A run is late after this time. */
  lateSeconds: number;
}

/** Messages of one transaction. */
const batch = 50;
const windowMinutes = 60;
const retentionMs = 90 * 86_400_000;

export function createMissedRuns({ db, clock, notifications, lateSeconds }: MissedRunsDeps) {
  const lateLimit = () => new Date(clock.now().getTime() - lateSeconds * 1000);

  return {
    lateSeconds,

    /** The number of schedules that are late now. */
    countLate: (): Promise<number> => store.countLate(db, lateLimit()),

    /** Notices late schedules and notifies the clients of all missed runs. */
    async report(): Promise<void> {
      await store.recordLate(db, lateLimit(), clock.now());
      for (let policies = batch; policies === batch; ) {
        policies = await transaction(db, async (tx) => {
          const now = clock.now();
          const windowStart = new Date(now.getTime() - windowMinutes * 60_000);
          const claimed = await store.claimReports(tx, windowStart, batch);
          for (const policy of claimed) {
            const missed = await store.takeUnreported(tx, policy.id, now);
            if (missed.length > 0) await notifications.issue(tx, missedMessage(policy, missed, windowMinutes));
          }
          return claimed.length;
        });
      }
    },

    removeOld: (): Promise<void> => store.removeOld(db, new Date(clock.now().getTime() - retentionMs)),
  };
}
