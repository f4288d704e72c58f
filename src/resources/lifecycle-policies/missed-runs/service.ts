/**
 * Notices schedules that do not run on time, and notifies their clients. Every process scans, because the usual reason is
 * that the worker of the region is gone.
 *
 * Invariant: a missed run is reported once, and a policy has at most one message in each window. What is missed meanwhile
 * is in the message after the window. A run that is on time makes none, so a recovery ends the messages.
 */
import type { Scope } from '../../../authz/actor.ts';
import { type Clock, daysBefore, withZone } from '../../../platform/clock.ts';
import { type Db, transaction } from '../../../platform/db.ts';
import { createPause } from '../../../platform/event-loop.ts';
import type { Notifications } from '../../notifications/service.ts';
import { requireFound } from '../../service-kit.ts';
import { parseTiming, type Timing } from '../fire-times.ts';
import * as policies from '../store.ts';
import { missedMessage } from './message.ts';
import type { ListMissedRuns, MissedRun } from './schema.ts';
import * as store from './store.ts';
import type { MissedRunView } from './store.ts';

interface MissedRunsDeps {
  db: Db;
  clock: Clock;
  notifications: Pick<Notifications, 'issue'>;
  /** A run is late after this time. */
  lateSeconds: number;
}

export type MissedRuns = ReturnType<typeof createMissedRuns>;

/** Messages of one transaction. */
const batch = 50;
const windowMinutes = 60;
const retentionDays = 90;

export function createMissedRuns({ db, clock, notifications, lateSeconds }: MissedRunsDeps) {
  const lateLimit = () => new Date(clock.now().getTime() - lateSeconds * 1000);

  return {
    lateSeconds,

    /** The number of schedules that are late now. */
    countLate: (): Promise<number> => store.countLate(db, lateLimit()),

    /** Newest first. */
    async list(scope: Scope, policyId: number, { limit = 100, offset = 0 }: ListMissedRuns) {
      requireFound(await policies.find(db, scope, policyId), 'lifecycle policy', policyId);
      const { count, rows } = await store.list(db, policyId, { limit, offset });
      const pause = createPause();
      const results: MissedRun[] = [];
      for (const row of rows) {
        await pause();
        results.push(toResponse(row));
      }
      return { count, results };
    },

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

    removeOld: () => store.removeOld(db, daysBefore(clock.now(), retentionDays)),
  };
}

/** Skipped instants that a response lists. */
const maxListed = 100;

function toResponse(row: MissedRunView): MissedRun {
  const { scheduleId, scheduledAt, startedAt, skipped } = row;
  return {
    schedule_id: scheduleId,
    due_at: withZone(scheduledAt),
    started_at: withZone(startedAt),
    skipped,
    skipped_at: skippedOf(row)
      .slice(0, maxListed)
      .map((at) => withZone(at)),
  };
}

/** The instants that the run replaced. They are not stored: a schedule that has changed since has others, so none then. */
function skippedOf({ scheduledAt, startedAt, skipped, given, createdAt }: MissedRunView): Date[] {
  if (skipped === 0 || !startedAt || !given || !createdAt || createdAt > scheduledAt) return [];
  const times = parseTiming(given as Timing, createdAt);
  if ('errors' in times) return [];
  const instants: Date[] = [];
  for (let at = times.next(scheduledAt); at && at <= startedAt && instants.length < skipped; at = times.next(at)) {
    instants.push(at);
  }
  return instants.length === skipped ? instants : [];
}
