/**
 * Recomputes stored next runs when:
 *
 * - the time zone rules changed; or
 * - the clock was set back, so that a stored next run is too late.
 *
 * A worker checks all of them when it starts, when the zone files of the system are updated, and when the clock is set back.
 */
import type { Clock } from '../../../platform/clock.ts';
import type { Db } from '../../../platform/db.ts';
import { createPause } from '../../../platform/event-loop.ts';
import type { Logger } from '../../../platform/log.ts';
import { timeZoneData } from '../../../platform/time-zone.ts';
import { timesOf } from '../schedule-rules.ts';
import * as store from '../store.ts';

interface RescheduleDeps {
  db: Db;
  clock: Clock;
  log: Logger;
  regionIds: number[];
}

const page = 500;
/** Corrections of a synchronized clock are smaller. */
const toleranceMs = 1000;

/** Returns a duty that does nothing until the rules change or the clock is set back. */
export function createReschedule(deps: RescheduleDeps): () => Promise<void> {
  let applied = '';
  let appliedAt = Number.NEGATIVE_INFINITY;
  return async () => {
    const { source, version } = timeZoneData();
    const current = `${source} ${version}`;
    const now = deps.clock.now().getTime();
    if (current !== applied || now < appliedAt - toleranceMs) await rescheduleAll(deps);
    applied = current;
    appliedAt = now;
  };
}

async function rescheduleAll({ db, clock, log, regionIds }: RescheduleDeps): Promise<void> {
  const pause = createPause();
  for (let last: string | null = null; ; ) {
    const now = clock.now();
    const schedules = await store.findUpcoming(db, regionIds, now, last, page);
    const moved: store.MovedRun[] = [];
    for (const schedule of schedules) {
      await pause();
      const next = nextOf(schedule, now);
      if (next && mustMove(schedule, next)) {
        moved.push({ id: schedule.id, from: schedule.nextRunAt, to: next });
      }
    }
    if (moved.length > 0) {
      await store.moveRuns(db, moved);
      log.info(
        { schedules: moved.length, timeZones: timeZoneData().version },
        'next runs follow new time zone rules, or a clock that was set back',
      );
    }
    if (schedules.length < page) return;
    last = schedules.at(-1)!.id;
  }
}

/** Only zones have rules that change. Without one, a next run that is earlier than the stored one means that the clock was set back. */
function mustMove({ given, nextRunAt }: store.UpcomingSchedule, next: Date): boolean {
  return 'timezone' in given ? next.getTime() !== nextRunAt.getTime() : next < nextRunAt;
}

/** Null for a schedule that has become invalid; its stored run reports that. */
function nextOf(schedule: store.UpcomingSchedule, now: Date): Date | null {
  try {
    return timesOf(schedule).next(now);
  } catch {
    return null;
  }
}
