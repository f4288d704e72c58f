/**
 * Cron fields by the rules of APScheduler's CronTrigger: their syntax, their defaults, and the days and minutes that they
 * match. Pure; in local time of any zone (fire-times.ts).
 *
 * Text that CronTrigger refuses is refused. Text that it accepts and then ignores (the step of `mon-fri/2`, the end of
 * `lastly`) is refused, too, because the schedule would not run as written.
 */
import type { FieldError } from '../../errors/catalogue.ts';

export const cronFieldNames = ['month', 'day', 'week', 'day_of_week', 'hour', 'minute'] as const;
type CronFieldName = (typeof cronFieldNames)[number];
export type CronFields = Partial<Record<CronFieldName, string | null>>;

/** The parsed fields. Tables are indexed by value. */
export interface Cron {
  months: boolean[];
  days: boolean[];
  lastDay: boolean;
  /** Weekdays (from Monday, 0) by their position in the month (0 to 4; 5: the last), at `7 * position + weekday`. */
  weekdayPositions: boolean[];
  weeks: boolean[];
  weekdays: boolean[];
  /** Minutes of a day, ascending. */
  minutesOfDay: number[];
}

const bounds: Record<CronFieldName, [min: number, max: number]> = {
  month: [1, 12],
  day: [1, 31],
  week: [1, 53],
  day_of_week: [0, 6],
  hour: [0, 23],
  minute: [0, 59],
};
/** Defaults of fields finer than every given field; the default of coarser fields is `*`. */
const finer: Record<CronFieldName, string> = {
  month: '1',
  day: '1',
  week: '*',
  day_of_week: '*',
  hour: '0',
  minute: '0',
};
const monthNames = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const weekdayNames = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
const lastPosition = 5;
const positions = ['1st', '2nd', '3rd', '4th', '5th', 'last'];

class InvalidExpression extends Error {}

/** Parses the fields. Errors have the names of the fields as paths. */
export function parseCron(fields: CronFields): { cron: Cron } | { errors: FieldError[] } {
  const isGiven = (name: CronFieldName) => typeof fields[name] === 'string';
  const leastSignificant = cronFieldNames.findLastIndex(isGiven);
  if (leastSignificant < 0) {
    const message = `at least one of ${cronFieldNames.join(', ')} is required; without any it would run all the time`;
    return { errors: [{ path: '', message }] };
  }
  const cron: Cron = {
    months: [],
    days: [],
    lastDay: false,
    weekdayPositions: [],
    weeks: [],
    weekdays: [],
    minutesOfDay: [],
  };
  const hours: boolean[] = [];
  const minutes: boolean[] = [];
  const tables = { month: cron.months, day: cron.days, week: cron.weeks, day_of_week: cron.weekdays, hour: hours };
  const errors: FieldError[] = [];
  for (const [i, name] of cronFieldNames.entries()) {
    const text = fields[name] ?? (i < leastSignificant ? '*' : finer[name]);
    try {
      for (const expression of text.trim().split(/ *, */)) {
        readExpression(name, expression, name === 'minute' ? minutes : tables[name], cron);
      }
    } catch (error) {
      if (!(error instanceof InvalidExpression)) throw error;
      errors.push({ path: name, message: error.message });
    }
  }
  if (errors.length > 0) return { errors };
  for (let minute = 0; minute < 1440; minute++) {
    if (hours[Math.floor(minute / 60)] && minutes[minute % 60]) cron.minutesOfDay.push(minute);
  }
  return { cron };
}

/** Adds the values of one expression of a list to the table. @throws InvalidExpression */
function readExpression(name: CronFieldName, expression: string, table: boolean[], cron: Cron): void {
  const range = /^(?:(\*)|([0-9]+)(?:-([0-9]+))?)(?:\/([0-9]+))?$/.exec(expression);
  if (range) {
    const [, all, first, last, step] = range;
    addRange(name, table, all ? null : number(first), number(last), number(step));
    return;
  }
  if (name === 'day' && expression.toLowerCase() === 'last') {
    cron.lastDay = true;
    return;
  }
  const position = name === 'day' && /^(1st|2nd|3rd|4th|5th|last) +([a-z0-9_]+)$/i.exec(expression);
  if (position) {
    const option = positions.indexOf(position[1]!.toLowerCase());
    cron.weekdayPositions[7 * option + named(weekdayNames, position[2]!, 'weekday')] = true;
    return;
  }
  const words = name === 'month' ? monthNames : name === 'day_of_week' ? weekdayNames : null;
  const names = words && /^([a-z]+)(?:-([a-z]+))?$/i.exec(expression);
  if (!names) throw new InvalidExpression(`${JSON.stringify(expression)} is invalid; ${examples(name)}`);
  const what = name === 'month' ? 'month' : 'weekday';
  const base = name === 'month' ? 1 : 0;
  const first = named(words, names[1]!, what) + base;
  addRange(name, table, first, names[2] === undefined ? null : named(words, names[2], what) + base, null);
}

function addRange(
  name: CronFieldName,
  table: boolean[],
  first: number | null,
  last: number | null,
  step: number | null,
): void {
  const [min, max] = bounds[name];
  if (step === 0) throw new InvalidExpression('the step must be more than 0');
  if (step !== null && step > max - min)
    throw new InvalidExpression(`the step ${step} is more than the range ${min} to ${max} has`);
  const from = first ?? min;
  // A single value is a range of one; with a step the range extends to the maximum.
  const to = last ?? (first !== null && step === null ? first : max);
  if (last !== null && from > last) throw new InvalidExpression(`the range ${from}-${last} is reversed`);
  if (from < min) throw new InvalidExpression(`${from} is less than ${min}, the minimum`);
  if (to > max) throw new InvalidExpression(`${to} is more than ${max}, the maximum`);
  // Like CronTrigger, treat a range that ends in 0 as a range to the maximum.
  if (first !== null && step !== null && step > (last || max) - from) {
    throw new InvalidExpression(`the step ${step} is more than the range ${from} to ${last || max} has`);
  }
  for (let value = from; value <= to; value += step ?? 1) table[value] = true;
}

/** @throws InvalidExpression for a number that JavaScript cannot represent exactly */
function number(digits: string | undefined): number | null {
  if (digits === undefined) return null;
  if (!Number.isSafeInteger(Number(digits))) throw new InvalidExpression('a number is too large');
  return Number(digits);
}

function named(names: string[], word: string, what: string): number {
  const index = names.indexOf(word.toLowerCase());
  if (index < 0)
    throw new InvalidExpression(`${JSON.stringify(word)} is not a ${what}; use one of ${names.join(', ')}`);
  return index;
}

function examples(name: CronFieldName): string {
  const [min, max] = bounds[name];
  const more = {
    month: ', names such as jan or jan-mar',
    day: ', last, or weekdays such as 2nd mon or last fri',
    day_of_week: ' (0 is Monday), names such as mon or mon-fri',
    week: ' (ISO weeks)',
    hour: '',
    minute: '',
  }[name];
  return `write * or */2, numbers from ${min} to ${max} such as ${max - 3}, ${max - 3}-${max} or ${min}-${max}/2${more}, or several with commas`;
}

/** Whether a day matches. `weekday` is of the day; `lastDay` of its month. */
export function matchesDay(cron: Cron, day: number, weekday: number, lastDay: number): boolean {
  if (!cron.weekdays[weekday]) return false;
  if (cron.days[day] || (cron.lastDay && day === lastDay)) return true;
  if (cron.weekdayPositions[7 * Math.floor((day - 1) / 7) + weekday]) return true;
  return day + 7 > lastDay && cron.weekdayPositions[7 * lastPosition + weekday] === true;
}
