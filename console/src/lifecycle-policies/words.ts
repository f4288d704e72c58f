import { useQuery } from '@tanstack/react-query';
import { loadChunk } from '../ui/chunks.ts';
import type { Schedule, ScheduleInput } from './data.ts';

type Timing = Schedule | ScheduleInput;

const CRON_FIELDS = ['month', 'day', 'week', 'day_of_week', 'hour', 'minute'] as const;
/** Value of an omitted field after the last given one. */
const FIRST = { month: '1', day: '1', week: '*', day_of_week: '*', hour: '0', minute: '0' } as const;
const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;
const DURATION_UNITS = ['weeks', 'days', 'hours', 'minutes'] as const;

type Cron = Record<(typeof CRON_FIELDS)[number], string>;
type Duration = { readonly [Unit in (typeof DURATION_UNITS)[number]]?: number | null | undefined };

/** All six fields, with those that the schedule omits. */
function fullCron(schedule: Timing): Cron {
  const given = schedule as { readonly [Field in keyof Cron]?: string | null };
  const isGiven = (field: keyof Cron) => given[field] !== undefined && given[field] !== null && given[field] !== '';
  const last = CRON_FIELDS.findLastIndex(isGiven);
  const valueOf = (field: keyof Cron, index: number) =>
    isGiven(field) ? given[field]!.trim().toLowerCase() : index < last ? '*' : FIRST[field];
  return Object.fromEntries(CRON_FIELDS.map((field, index) => [field, valueOf(field, index)])) as Cron;
}

/** `month=* day=* week=* day_of_week=mon-fri hour=3 minute=0`: only the fields that restrict. */
export function cronText(schedule: Timing): string {
  const cron = fullCron(schedule);
  const shown = CRON_FIELDS.filter((field) => cron[field] !== '*').map((field) => `${field}=${cron[field]}`);
  return shown.length === 0 ? 'minute=*' : shown.join(' ');
}

/** The five fields of a crontab; null where a crontab cannot say it. ISO weeks are not a part of it. */
function crontab(schedule: Timing): string | null {
  const cron = fullCron(schedule);
  // Weekdays are numbered from Monday here and from Sunday in a crontab; names mean the same in both.
  let weekday = cron.day_of_week.replace(/(?<![/\d])[0-6]\b/g, (digit) => WEEKDAYS[Number(digit)]!);
  let day = cron.day;
  const nth = /^(\d)(?:st|nd|rd|th) ([a-z]{3})$/.exec(day);
  const last = /^last ([a-z]{3})$/.exec(day);
  if (nth || last) {
    if (weekday !== '*') return null;
    const name = (nth?.[2] ?? last![1]) as (typeof WEEKDAYS)[number];
    const number = (WEEKDAYS.indexOf(name) + 1) % 7;
    weekday = nth ? `${number}#${nth[1]}` : `${number}L`;
    day = '*';
  } else if (day === 'last') day = 'L';
  else if (/[a-z]/.test(day)) return null;
  return [cron.minute, cron.hour, day, cron.month, weekday].join(' ').toUpperCase();
}

/** `1 week 2 days`; null when nothing is set. */
export function durationText(duration: Duration | null | undefined): string | null {
  const parts = DURATION_UNITS.flatMap((unit) => {
    const count = duration?.[unit] ?? 0;
    return count > 0 ? [`${count} ${count === 1 ? unit.slice(0, -1) : unit}`] : [];
  });
  return parts.length === 0 ? null : parts.join(' ');
}

/** The times of a schedule as a sentence. Null while it is loaded, and for times that have no sentence. */
export function useWords(schedule: Timing): string | null {
  const isCron = schedule.type === 'cron';
  const expression = isCron ? crontab(schedule) : null;
  // Most pages need no sentence, so the library is a chunk of its own.
  const { data } = useQuery({
    queryKey: ['words', expression],
    queryFn: async () => {
      const { default: cronstrue } = await loadChunk(() => import('cronstrue'));
      try {
        return cronstrue.toString(expression!, { use24HourTimeFormat: true });
      } catch {
        return null;
      }
    },
    enabled: expression !== null,
    staleTime: Infinity,
  });
  if (!isCron) {
    const interval = durationText(schedule as Duration);
    return interval === null ? null : `Every ${interval}`;
  }
  if (!data) return null;
  const { week } = fullCron(schedule);
  return week === '*' ? data : `${data}, in ISO weeks ${week}`;
}
