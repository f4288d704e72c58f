import type { Schedule, ScheduleInput } from './data.ts';
import { type Values, withoutEmpty } from '../ui/form/use-form.ts';

const COMMON = ['type', 'max_quantity', 'resource_name_template', 'retention_time'] as const;
const CRON = ['month', 'day', 'week', 'day_of_week', 'hour', 'minute', 'timezone'] as const;
const INTERVAL = ['weeks', 'days', 'hours', 'minutes'] as const;

/** Nightly in the time zone of the browser: a schedule that most policies need. */
export const nightly: ScheduleInput = {
  type: 'cron',
  hour: '3',
  minute: '0',
  timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  max_quantity: 7,
};

/** The fields of a schedule's own type that are not empty. What was typed for the other type stays in the form only. */
export function toScheduleInput(values: Values): ScheduleInput {
  const fields: readonly string[] = [...COMMON, ...(values['type'] === 'interval' ? INTERVAL : CRON)];
  const own = Object.entries(values).filter(([name, value]) => fields.includes(name) && value !== null);
  const { retention_time: retention, ...rest } = withoutEmpty(Object.fromEntries(own));
  // The API refuses a retention time without a unit.
  const isSet = retention !== undefined && Object.keys(retention as object).length > 0;
  return { ...rest, ...(isSet && { retention_time: retention }) } as ScheduleInput;
}

/** The fields of an existing schedule that can be changed. */
export function scheduleForEdit(schedule: Schedule): Values {
  const fields: readonly string[] = [...COMMON, ...CRON, ...INTERVAL];
  const retention = Object.entries(schedule.retention_time ?? {}).filter(([, value]) => value !== null);
  const own = Object.entries(schedule).filter(([name, value]) => fields.includes(name) && value !== null);
  return { ...Object.fromEntries(own), retention_time: Object.fromEntries(retention) };
}

/** The changed fields; null where one was emptied. */
export function scheduleChanges(before: Schedule, values: Values): Values {
  const next = toScheduleInput(values) as Values;
  const old = toScheduleInput(scheduleForEdit(before)) as Values;
  const names = new Set([...Object.keys(next), ...(next['type'] === old['type'] ? Object.keys(old) : [])]);
  const changed = [...names].filter((name) => JSON.stringify(next[name]) !== JSON.stringify(old[name]));
  return Object.fromEntries(changed.map((name) => [name, next[name] ?? null]));
}
