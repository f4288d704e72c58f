/**
 * Fire times. Pure: from a schedule and an instant, the next instant. A local time that the zone
 * skips does not fire; one that it repeats fires once, at its first instant. So each local time has at most one instant,
 * later local times have later ones, and the next fire time is the first matching local time whose instant is later.
 */
import type { FieldError } from '../../errors/catalogue.ts';
import { timeZone, type TimeZone } from '../../platform/time-zone.ts';
import { type Cron, type CronFields, matchesDay, parseCron } from './cron.ts';

/** Weeks, days, hours and minutes of elapsed time. */
export type Duration = Partial<Record<'weeks' | 'days' | 'hours' | 'minutes', number | null>>;

export type Timing = ({ type: 'cron'; timezone?: string | null } & CronFields) | ({ type: 'interval' } & Duration);

export interface FireTimes {
  zone: TimeZone;
  /** The first instant strictly after the given one; null if the schedule never fires again. */
  next(after: Date): Date | null;
}

const daySeconds = 86_400;
/** The calendar repeats after 400 years, so a date that does not occur within them never occurs. */
const maxYears = 400;
/** The last year that dates of the API can show. */
export const lastYear = 9999;
const noneLeft = `never fires again before the year ${lastYear + 1}`;

export function durationMs({ weeks, days, hours, minutes }: Duration): number {
  return ((((weeks ?? 0) * 7 + (days ?? 0)) * 24 + (hours ?? 0)) * 60 + (minutes ?? 0)) * 60_000;
}

/**
 * Parses a schedule. `anchor` is the start of intervals.
 * @returns `errors` with the names of the fields as paths; an empty path means the whole schedule
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
  const message = next(new Date(0)) ? noneLeft : 'never fires: no date and time matches all fields';
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
    // An instant outside the range of Date has no year.
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
    const { minutesOfDay } = cron;
    for (let i = day === firstDay ? indexOfFirst(minutesOfDay, firstMinute) : 0; i < minutesOfDay.length; i++) {
      const instant = zone.firstInstantOf(day * daySeconds + minutesOfDay[i]! * 60);
      if (instant !== null && instant > after) return new Date(instant * 1000);
    }
  }
  return null;
}

/** The days that match a cron from a given day on (in days since 1970), year by year. */
function* daysOf(cron: Cron, from: number): Generator<number> {
  const start = new Date(from * daySeconds * 1000).getUTCFullYear();
  const end = Math.min(start + maxYears, lastYear);
  for (let year = start; year <= end; year++) {
    const firstDay = Date.UTC(year, 0, 1) / (daySeconds * 1000);
    const days = daysOfYear(cron, year, weekdayOf(firstDay));
    for (let i = indexOfFirst(days, from - firstDay); i < days.length; i++) yield firstDay + days[i]!;
  }
}

/** The index of the first of the ascending numbers that is at least `least`. */
function indexOfFirst(numbers: number[], least: number): number {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle]! < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Days of the year (from 0) that match a cron, by kind of year: a search through centuries examines each kind once. */
const daysByKind = new WeakMap<Cron, number[][]>();

/** Years are of one kind if their weekdays and ISO weeks fall on the same days. There are 28 kinds. */
function daysOfYear(cron: Cron, year: number, firstWeekday: number): number[] {
  const [leap, afterLeap] = [isLeap(year), isLeap(year - 1)];
  let known = daysByKind.get(cron);
  if (!known) daysByKind.set(cron, (known = []));
  return (known[4 * firstWeekday + 2 * Number(leap) + Number(afterLeap)] ??= findDays(
    cron,
    firstWeekday,
    leap,
    afterLeap,
  ));
}

function findDays(cron: Cron, firstWeekday: number, leap: boolean, afterLeap: boolean): number[] {
  const days: number[] = [];
  const lastWeek = weeksOf(firstWeekday, leap);
  const weekBefore = weeksOf((firstWeekday + (afterLeap ? 5 : 6)) % 7, afterLeap);
  let beforeMonth = 0;
  for (const [i, length] of daysOfMonths.entries()) {
    const lastDay = i === 1 && leap ? 29 : length;
    for (let day = 1; cron.months[i + 1] && day <= lastDay; day++) {
      const dayOfYear = beforeMonth + day - 1;
      const weekday = (firstWeekday + dayOfYear) % 7;
      if (!matchesDay(cron, day, weekday, lastDay)) continue;
      // A week belongs to the year of its Thursday.
      const week = Math.floor((dayOfYear - weekday + 10) / 7);
      const isoWeek = week < 1 ? weekBefore : week > lastWeek ? 1 : week;
      if (cron.weeks[isoWeek]) days.push(dayOfYear);
    }
    beforeMonth += lastDay;
  }
  return days;
}

const daysOfMonths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const isLeap = (year: number) => (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;

/** ISO weeks of a year; weekdays count from Monday, 0. */
function weeksOf(firstWeekday: number, leap: boolean): number {
  return firstWeekday === 3 || (leap && firstWeekday === 2) ? 53 : 52;
}

/** 1970 began on a Thursday. */
function weekdayOf(day: number): number {
  return (((day + 3) % 7) + 7) % 7;
}

/**
 * Runs after this instant were made before the clock was set back, so they, and their snapshots, are older than all others. A
 * requested run may be a moment ahead.
 */
export const lastInstant = (now: Date): Date => new Date(now.getTime() + 60_000);
