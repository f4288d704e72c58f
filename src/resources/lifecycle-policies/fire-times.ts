/**
 * When schedules fire. Pure: from what a schedule says and an instant, the next instant. A local time that the zone
 * skips does not fire; one that it repeats fires once, at its first instant. So each local time has at most one instant,
 * later local times have later ones, and the next fire time is the first matching local time whose instant is later.
 */
import type { FieldError } from '../../errors/catalogue.ts';
import { timeZone } from '../../platform/time-zone.ts';
import type { TimeZone } from '../../platform/time-zone.ts';
import { matchesDay, parseCron } from './cron.ts';
import type { Cron, CronFields } from './cron.ts';

/** Weeks, days, hours and minutes of elapsed time. */
export interface Duration {
  weeks?: number | null;
  days?: number | null;
  hours?: number | null;
  minutes?: number | null;
}

export type Timing = ({ type: 'cron'; timezone?: string | null } & CronFields) | ({ type: 'interval' } & Duration);

export interface FireTimes {
  zone: TimeZone;
  /** The first instant strictly after the given one; null: there is none. */
  next(after: Date): Date | null;
}

const daySeconds = 86_400;
/** The calendar repeats after 400 years, so what does not come in as many never does. */
const maxYears = 400;
const lastYear = 9999;
const noneLeft = `never fires again before the year ${lastYear + 1}`;

export function durationMs({ weeks, days, hours, minutes }: Duration): number {
  return ((((weeks ?? 0) * 7 + (days ?? 0)) * 24 + (hours ?? 0)) * 60 + (minutes ?? 0)) * 60_000;
}

/**
 * Reads what a schedule says. `anchor` is what an interval is measured from.
 * @returns `errors` under the names of the fields, or under none when it is the schedule as a whole
 */
export function parseTiming(timing: Timing, anchor: Date): FireTimes | { errors: FieldError[] } {
  if (timing.type === 'interval') return parseInterval(timing, anchor);
  const zone = timeZone(timing.timezone ?? 'UTC');
  const parsed = parseCron(timing);
  const errors = 'errors' in parsed ? [...parsed.errors] : [];
  if (!zone) {
    const message = `${JSON.stringify(timing.timezone)} is not a zone of the IANA database, such as Europe/Berlin`;
    errors.push({ path: 'timezone', message });
  }
  if (errors.length > 0 || !zone || 'errors' in parsed) return { errors };
  const next = (after: Date) => nextOfCron(parsed.cron, zone, after);
  if (next(anchor) !== null) return { zone, next };
  const message = next(new Date(0)) ? noneLeft : 'never fires: no day and time is all of this';
  return { errors: [{ path: '', message }] };
}

function parseInterval(timing: Duration, anchor: Date): FireTimes | { errors: FieldError[] } {
  const length = durationMs(timing);
  if (length <= 0) {
    const message = 'an interval needs at least one of weeks, days, hours, minutes that is more than 0';
    return { errors: [{ path: '', message }] };
  }
  const start = anchor.getTime();
  const next = (after: Date) => {
    const times = Math.max(1, Math.floor((after.getTime() - start) / length) + 1);
    const at = new Date(start + times * length);
    // What no Date can hold has no year.
    return at.getUTCFullYear() <= lastYear ? at : null;
  };
  if (next(anchor) === null) return { errors: [{ path: '', message: noneLeft }] };
  return { zone: timeZone('UTC')!, next };
}

function nextOfCron(cron: Cron, zone: TimeZone, afterDate: Date): Date | null {
  const after = Math.floor(afterDate.getTime() / 1000);
  const local = after + zone.offsetAt(after);
  const firstDay = Math.floor(local / daySeconds);
  const firstMinute = Math.floor((local - firstDay * daySeconds) / 60);
  for (const day of daysOf(cron, firstDay)) {
    for (const minute of cron.minutesOfDay) {
      if (day === firstDay && minute < firstMinute) continue;
      const instant = zone.firstInstantOf(day * daySeconds + minute * 60);
      if (instant !== null && instant > after) return new Date(instant * 1000);
    }
  }
  return null;
}

/** The days from one on (days since 1970) that a cron means, through the months that it means. */
function* daysOf(cron: Cron, from: number): Generator<number> {
  const start = new Date(from * daySeconds * 1000);
  let year = start.getUTCFullYear();
  let month = start.getUTCMonth() + 1;
  let firstDay = start.getUTCDate();
  const end = Math.min(year + maxYears, lastYear);
  while (year <= end) {
    if (cron.months[month]) yield* daysOfMonth(cron, year, month, firstDay);
    firstDay = 1;
    if (month === 12) year += 1;
    month = (month % 12) + 1;
  }
}

function* daysOfMonth(cron: Cron, year: number, month: number, firstDay: number): Generator<number> {
  const beforeFirst = Date.UTC(year, month - 1, 0) / (daySeconds * 1000);
  const lastDay = new Date(Date.UTC(year, month, 0)).getUTCDate();
  for (let day = firstDay; day <= lastDay; day++) {
    // 1970 began on a Thursday.
    const weekday = (((beforeFirst + day + 3) % 7) + 7) % 7;
    if (matchesDay(cron, day, weekday, lastDay) && cron.weeks[isoWeek(beforeFirst + day, weekday)]) {
      yield beforeFirst + day;
    }
  }
}

/** The ISO week of a day: it belongs to the year that its Thursday is in. */
function isoWeek(day: number, weekday: number): number {
  const thursday = day - weekday + 3;
  const year = new Date(thursday * daySeconds * 1000).getUTCFullYear();
  return Math.floor((thursday - Date.UTC(year, 0, 1) / (daySeconds * 1000)) / 7) + 1;
}
