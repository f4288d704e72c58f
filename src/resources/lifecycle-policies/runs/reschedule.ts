/**
 * Moves the next runs of schedules when a release of the time zone database changes the clocks of their zones: next runs
 * are stored, so they follow the rules by which they were computed. A worker checks all of them when it starts and when the
 * zone files of the system are updated.
 */
import type { Clock } from '../../../platform/clock.ts';
import type { Db } from '../../../platform/db.ts';
import { createPause } from '../../../platform/event-loop.ts';
import type { Logger } from '../../../platform/log.ts';
import { timeZoneData } from '../../../platform/time-zone.ts';
import { timesOf } from '../schedules.ts';
import * as store from '../store.ts';

interface RescheduleDeps {
  db: Db;
  clock: Clock;
  log: Logger;
  regionIds: number[];
}

const page = 500;

/** Returns a duty that does nothing until the rules change. */
export function createReschedule(deps: RescheduleDeps): () => Promise<void> {
  let applied = '';
  return async () => {
    const { source, version } = timeZoneData();
    const current = `${source} ${version}`;
    if (current === applied) return;
    await rescheduleAll(deps);
    applied = current;
  };
}

async function rescheduleAll({ db, clock, log, regionIds }: RescheduleDeps): Promise<void> {
  const pause = createPause();
  for (let last: string | undefined; ; ) {
    const now = clock.now();
    const schedules = await store.findZoned(db, regionIds, now, last, page);
    const moved: store.MovedRun[] = [];
    for (const schedule of schedules) {
      await pause();
      const next = nextOf(schedule, now);
      if (next && next.getTime() !== schedule.nextRunAt.getTime()) {
        moved.push({ id: schedule.id, from: schedule.nextRunAt, to: next });
      }
    }
    if (moved.length > 0) {
      await store.moveRuns(db, moved);
      log.info({ schedules: moved.length, timeZones: timeZoneData().version }, 'next runs follow new time zone rules');
    }
    if (schedules.length < page) return;
    last = schedules.at(-1)!.id;
  }
}

/** Null for a schedule that has become invalid; its stored run reports that. */
function nextOf(schedule: store.ZonedSchedule, now: Date): Date | null {
  try {
    return timesOf(schedule).next(now);
  } catch {
    return null;
  }
}
