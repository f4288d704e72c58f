/**
 * Compares fire times with an independent implementation of the rules: Intl renders ten years, in quarters of an hour, as
 * local time, and the fire times are the local times that match all fields and occur for the first time.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import vectors from '../../../test/vectors/cron-fire-times.json' with { type: 'json' };
import { type FireTimes, parseTiming, type Timing } from './fire-times.ts';

const utc = (date: Date) => date.toISOString().replace('.000', '');

function fireTimes(timing: Timing, anchor = new Date('2026-01-01T00:00:00Z')): FireTimes {
  const parsed = parseTiming(timing, anchor);
  if ('errors' in parsed) throw new Error(JSON.stringify(parsed.errors));
  return parsed;
}

function refused(timing: Timing): string[] {
  const parsed = parseTiming(timing, new Date('2026-01-01T00:00:00Z'));
  return 'errors' in parsed ? parsed.errors.map((error) => error.path) : [];
}

function runs(times: FireTimes, from: Date, count: number): string[] {
  const found: string[] = [];
  for (let at = times.next(from); at && found.length < count; at = times.next(at)) found.push(utc(at));
  return found;
}

describe('example fire times', () => {
  it.each(vectors.map((vector) => [JSON.stringify(vector.schedule), vector] as const))('%s', (_name, vector) => {
    const found = runs(fireTimes(vector.schedule as Timing), new Date(vector.from), vector.utc_one_of.length);
    expect(found).toHaveLength(vector.utc_one_of.length);
    for (const [i, oneOf] of vector.utc_one_of.entries()) expect(oneOf).toContain(found[i]);
  });
});

/** A date in a zone. */
interface Day {
  month: number;
  day: number;
  lastDay: number;
  weekday: number;
  week: number;
  /** In order of `at`. */
  times: LocalTime[];
}

/** The local time of a zone at an instant, and whether that local time occurs for the first time. */
interface LocalTime {
  at: number;
  hour: number;
  minute: number;
  first: boolean;
}

const quarter = 15 * 60_000;
const day = 96 * quarter;
const weekdayNames = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];

/** The dates of ten years in a zone, with their local times, a quarter of an hour apart. */
function localDates(timeZone: string, firstYear: number): Day[] {
  const days = new Map<number, Day>();
  let latest = -Infinity;
  for (const { at, wall } of wallClockOf(timeZone, Date.UTC(firstYear, 0, 1), Date.UTC(firstYear + 10, 0, 1))) {
    const midnight = wall - (wall % day);
    if (!days.has(midnight)) days.set(midnight, dayOf(new Date(midnight)));
    const { times } = days.get(midnight)!;
    const [hour, minute] = [Math.floor((wall - midnight) / (4 * quarter)), ((wall - midnight) / 60_000) % 60];
    const isRepeated = wall <= latest && times.some((earlier) => earlier.hour === hour && earlier.minute === minute);
    times.push({ at, hour, minute, first: !isRepeated });
    latest = Math.max(latest, wall);
  }
  return [...days.values()];
}

/**
 * What a clock on the wall shows, as if it were UTC. Intl renders the ends of each six hours; only where they are not six hours
 * apart, it renders every quarter of an hour.
 */
function wallClockOf(timeZone: string, from: number, to: number): { at: number; wall: number }[] {
  // Swedish writes dates as ISO 8601.
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' });
  const render = (at: number) => Date.parse(`${format.format(at).replace(' ', 'T')}Z`);
  const block = 24 * quarter;
  const shown: { at: number; wall: number }[] = [];
  for (let start = from; start < to; start += block) {
    const wall = render(start);
    const changes = render(start + block) - wall !== block;
    for (let at = start; at < start + block; at += quarter) {
      shown.push({ at, wall: changes ? render(at) : wall + at - start });
    }
  }
  return shown;
}

function dayOf(date: Date): Day {
  return {
    month: date.getUTCMonth() + 1,
    day: date.getUTCDate(),
    lastDay: new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate(),
    weekday: (date.getUTCDay() + 6) % 7,
    week: weekOf(date),
    times: [],
  };
}

/** Week 1 begins with the Monday on or before January 4: counts from the last such Monday, seven days at a time. */
function weekOf(date: Date): number {
  const starts = [1, 0, -1].map((later) => {
    const fourth = Date.UTC(date.getUTCFullYear() + later, 0, 4);
    return fourth - ((new Date(fourth).getUTCDay() + 6) % 7) * day;
  });
  let week = 0;
  for (let monday = starts.find((start) => start <= date.getTime())!; monday <= date.getTime(); monday += 7 * day)
    week += 1;
  return week;
}

interface Field {
  text: string;
  holds(value: number, date: Day): boolean;
}

/** Valid texts of a numeric field, each with a predicate for the values that match it. */
const numbers = (min: number, max: number): fc.Arbitrary<Field> => {
  const value = fc.integer({ min, max });
  const range = fc.tuple(value, value).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
  return fc.oneof(
    fc.constant({ text: '*', holds: () => true }),
    value.map((one) => ({ text: `${one}`, holds: (v: number) => v === one })),
    range.map(([a, b]) => ({ text: `${a}-${b}`, holds: (v: number) => a <= v && v <= b })),
    fc.integer({ min: 1, max: max - min }).map((step) => ({
      text: `*/${step}`,
      holds: (v: number) => (v - min) % step === 0,
    })),
    range
      .filter(([a, b]) => a > 0 && a < b)
      .chain(([a, b]) =>
        fc.integer({ min: 1, max: b - a }).map((step) => ({
          text: `${a}-${b}/${step}`,
          holds: (v: number) => a <= v && v <= b && (v - a) % step === 0,
        })),
      ),
  );
};

const weekdays = fc.oneof(
  numbers(0, 6),
  fc.nat(6).map((one) => ({ text: weekdayNames[one]!, holds: (v: number) => v === one })),
  fc.constant({ text: 'Mon-fri', holds: (v: number) => v < 5 }),
);
const monthNames = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const months = fc.oneof(
  numbers(1, 12),
  fc.nat(11).map((one) => ({ text: monthNames[one]!, holds: (v: number) => v === one + 1 })),
);
const days = fc.oneof(
  numbers(1, 31),
  fc.constant({ text: 'last', holds: (v: number, { lastDay }: Day) => v === lastDay }),
  fc.tuple(fc.nat(5), fc.nat(6)).map(([option, weekday]) => ({
    text: `${['1st', '2nd', '3rd', '4th', '5th', 'last'][option]} ${weekdayNames[weekday]}`,
    holds: (v: number, date: Day) =>
      date.weekday === weekday && (option === 5 ? v + 7 > date.lastDay : v > option * 7 && v <= (option + 1) * 7),
  })),
);
const quarters = fc.constantFrom(
  { text: '*/15', holds: () => true },
  { text: '30', holds: (v: number) => v === 30 },
  { text: '0,45', holds: (v: number) => v === 0 || v === 45 },
);
const listOf = (one: fc.Arbitrary<Field>): fc.Arbitrary<Field> =>
  fc.array(one, { minLength: 1, maxLength: 3 }).map((all) => ({
    text: all.map((field) => field.text).join(', '),
    holds: (v, date) => all.some((field) => field.holds(v, date)),
  }));

const schedule = fc.record({
  month: fc.option(listOf(months), { freq: 2 }),
  day: fc.option(listOf(days), { freq: 2 }),
  week: fc.option(listOf(numbers(1, 53)), { freq: 1 }),
  day_of_week: fc.option(listOf(weekdays), { freq: 2 }),
  hour: fc.option(listOf(numbers(0, 23)), { freq: 2 }),
  minute: fc.option(quarters, { freq: 2 }),
});
type Schedule = Record<'month' | 'day' | 'week' | 'day_of_week' | 'hour' | 'minute', Field | null>;

function matchesDate(given: Schedule, date: Day): boolean {
  const finerGiven = given.day ?? given.week ?? given.day_of_week ?? given.hour ?? given.minute;
  const hourOrMinute = given.hour ?? given.minute;
  const inMonth = given.month ? given.month.holds(date.month, date) : finerGiven !== null || date.month === 1;
  const onDay = given.day
    ? given.day.holds(date.day, date)
    : (given.week ?? given.day_of_week ?? hourOrMinute) !== null || date.day === 1;
  const inWeek = !given.week || given.week.holds(date.week, date);
  const onWeekday = !given.day_of_week || given.day_of_week.holds(date.weekday, date);
  return inMonth && onDay && inWeek && onWeekday;
}

function matchesTime(given: Schedule, date: Day, { hour, minute, first }: LocalTime): boolean {
  const inHour = given.hour ? given.hour.holds(hour, date) : given.minute !== null || hour === 0;
  const inMinute = given.minute ? given.minute.holds(minute, date) : minute === 0;
  return first && inHour && inMinute;
}

/** Describes the first difference of two lists; null when they are equal. `toEqual` takes seconds on 350,000 numbers. */
function firstDifference(found: number[], expected: number[]): string | null {
  const length = Math.max(found.length, expected.length);
  const text = (at: number | undefined) => (at === undefined ? 'nothing' : utc(new Date(at)));
  for (let i = 0; i < length; i++) {
    if (found[i] !== expected[i]) return `${text(found[i])} where ${text(expected[i])} is expected`;
  }
  return null;
}

const zones: [string, number][] = [
  ['UTC', 2020],
  ['Europe/Dublin', 2020],
  ['America/New_York', 2024],
  ['Australia/Lord_Howe', 2020],
  ['Africa/Casablanca', 2014],
  ['Pacific/Apia', 2006],
  ['Asia/Gaza', 2018],
  ['America/St_Johns', 2004],
  ['Antarctica/Troll', 2024],
];

describe('ten years of fire times match local time: none repeats and none is missed', () => {
  it.each(zones)(
    '%s, from %i',
    (timezone, firstYear) => {
      const dates = localDates(timezone, firstYear);
      const [before, end] = [new Date(dates[0]!.times[0]!.at - 1000), dates.at(-1)!.times.at(-1)!.at];
      const text = (given: Schedule): Timing => ({
        type: 'cron',
        timezone,
        ...Object.fromEntries(Object.entries(given).map(([name, field]) => [name, field && field.text])),
      });
      fc.assert(
        fc.property(schedule, (given) => {
          fc.pre(Object.values(given).some((field) => field !== null));
          const expected = dates
            .filter((date) => matchesDate(given, date))
            .flatMap((date) => date.times.filter((time) => matchesTime(given, date, time)).map(({ at }) => at))
            .sort((a, b) => a - b);
          const parsed = parseTiming(text(given), before);
          if ('errors' in parsed) {
            expect(parsed.errors).toEqual([{ path: '', message: expect.stringContaining('never fires') }]);
            expect(expected).toEqual([]);
            return;
          }
          const found: number[] = [];
          let at = parsed.next(before);
          for (; at && at.getTime() <= end; at = parsed.next(at)) found.push(at.getTime());
          expect(firstDifference(found, expected)).toBeNull();
        }),
        { numRuns: 15 },
      );
    },
    60_000,
  );

  it('returns the next fire time after any instant, also between two occurrences of one local time', () => {
    const times = fireTimes({ type: 'cron', minute: '*/10', timezone: 'Australia/Lord_Howe' });
    const from = Date.parse('2026-04-04T12:00:00Z');
    const all = runs(times, new Date(from), 60).map((text) => Date.parse(text));
    fc.assert(
      fc.property(fc.integer({ min: from, max: all.at(-2)! }), (after) => {
        expect(times.next(new Date(after))!.getTime()).toBe(all.find((at) => at > after));
      }),
    );
    expect(new Set(all).size).toBe(all.length);
  });
});

describe('intervals', () => {
  it('are measured in elapsed time since creation, regardless of clock changes', () => {
    const anchor = new Date('2026-03-28T12:34:00Z');
    const times = fireTimes({ type: 'interval', days: 1, hours: 2 }, anchor);
    expect(runs(times, new Date('2026-03-28T12:34:00Z'), 2)).toEqual(['2026-03-29T14:34:00Z', '2026-03-30T16:34:00Z']);
    expect(runs(times, new Date('2020-01-01T00:00:00Z'), 1)).toEqual(['2026-03-29T14:34:00Z']);
    expect(runs(times, new Date('2026-03-29T14:34:00Z'), 1)).toEqual(['2026-03-30T16:34:00Z']);
  });

  it('neither repeat nor miss a fire time', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5000 }), fc.integer({ min: 0, max: 10 ** 12 }), (minutes, later) => {
        const anchor = new Date('2026-01-01T00:00:00Z');
        const times = fireTimes({ type: 'interval', minutes }, anchor);
        const next = times.next(new Date(anchor.getTime() + later))!.getTime() - anchor.getTime();
        expect(next % (minutes * 60_000)).toBe(0);
        expect(next).toBeGreaterThan(later);
        expect(next - minutes * 60_000).toBeLessThanOrEqual(later);
      }),
    );
  });
});

describe('validation of schedules', () => {
  it.each<[Timing, string[]]>([
    [{ type: 'cron' }, ['']],
    [{ type: 'cron', timezone: 'UTC' }, ['']],
    [{ type: 'cron', day: '31', month: '2' }, ['']],
    [{ type: 'cron', day: '31', month: '4,6,9,11' }, ['']],
    [{ type: 'cron', day: '1', week: '18' }, []],
    [{ type: 'cron', month: '6', week: '53' }, ['']],
    // This local time never occurs: it is skipped when daylight saving time starts.
    [{ type: 'cron', month: '3', day: 'last sun', hour: '2', minute: '30', timezone: 'Europe/Berlin' }, ['']],
    [
      { type: 'cron', hour: '24', minute: '60', month: '0', day: '32', week: '54', day_of_week: '7' },
      ['month', 'day', 'week', 'day_of_week', 'hour', 'minute'],
    ],
    [{ type: 'cron', minute: '*/60' }, ['minute']],
    [{ type: 'cron', minute: '*/0' }, ['minute']],
    [{ type: 'cron', minute: '5-5/1' }, ['minute']],
    [{ type: 'cron', minute: '30-10' }, ['minute']],
    [{ type: 'cron', minute: '' }, ['minute']],
    [{ type: 'cron', minute: '1,,2' }, ['minute']],
    [{ type: 'cron', minute: 'last' }, ['minute']],
    [{ type: 'cron', minute: '١' }, ['minute']],
    [{ type: 'cron', day_of_week: 'fri-mon' }, ['day_of_week']],
    [{ type: 'cron', day_of_week: 'mon-fri/2' }, ['day_of_week']],
    [{ type: 'cron', day_of_week: 'monday' }, ['day_of_week']],
    [{ type: 'cron', day_of_week: 'last' }, ['day_of_week']],
    [{ type: 'cron', day: '6th mon' }, ['day']],
    [{ type: 'cron', day: '2nd 0' }, ['day']],
    [{ type: 'cron', day: 'mon' }, ['day']],
    [{ type: 'cron', hour: '3', timezone: 'Mars/Olympus' }, ['timezone']],
    [{ type: 'cron', hour: '3', timezone: 'PST' }, ['timezone']],
    [{ type: 'cron', hour: '3', timezone: '+01:00' }, ['timezone']],
    [{ type: 'cron', hour: '3', timezone: 'europe/berlin' }, ['timezone']],
    [{ type: 'cron', hour: '3', timezone: '' }, ['timezone']],
    [{ type: 'cron', hour: '25', timezone: 'Nowhere' }, ['hour', 'timezone']],
    [{ type: 'interval' }, ['']],
    [{ type: 'interval', days: 0, hours: 0 }, ['']],
  ])('%j', (timing, paths) => {
    expect(refused(timing)).toEqual(paths);
  });

  it('any other text either is refused or has a next fire time', () => {
    const piece = fc.constantFrom(
      '*',
      '/',
      '-',
      ',',
      ' ',
      '1',
      '0',
      '31',
      'mon',
      'jan',
      'last',
      '2nd',
      'x',
      '\n',
      '9'.repeat(400),
    );
    const text = fc.option(fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join('')));
    fc.assert(
      fc.property(
        fc.record({ month: text, day: text, week: text, day_of_week: text, hour: text, minute: text }),
        (given) => {
          const parsed = parseTiming({ type: 'cron', ...given }, new Date('2026-01-01T00:00:00Z'));
          if (!('errors' in parsed)) expect(parsed.next(new Date('2026-01-01T00:00:00Z'))).toBeInstanceOf(Date);
        },
      ),
      { numRuns: 1000 },
    );
  });
});
