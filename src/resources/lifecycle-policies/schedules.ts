/** What schedules may say beside their times: checked when given, shown when read, and how many snapshots they keep. */
import { isDeepStrictEqual } from 'node:util';
import { invalidInput } from '../../errors/catalogue.ts';
import type { FieldError } from '../../errors/catalogue.ts';
import { withZone } from '../../platform/clock.ts';
import { createPause } from '../../platform/event-loop.ts';
import { cronFieldNames } from './cron.ts';
import { durationMs, parseTiming } from './fire-times.ts';
import type { Duration, FireTimes, Timing } from './fire-times.ts';
import { defaultTemplate, placeholders } from './schema.ts';
import type { CreateSchedule, Schedule } from './schema.ts';
import type { ScheduleRow } from './store.ts';

export const defaultQuantity = 2;
const durationNames = ['weeks', 'days', 'hours', 'minutes'] as const;
const fieldsOf = { cron: [...cronFieldNames, 'timezone'], interval: durationNames } as const;

/** A schedule that may be kept, with its times. */
export interface CheckedSchedule {
  given: CreateSchedule;
  times: FireTimes;
  /** null: kept by number alone. */
  retentionSeconds: number | null;
}

/** @throws ClientError 400 that names every fault in every schedule */
export function checkSchedules(schedules: CreateSchedule[], anchor: Date, path = 'schedules'): CheckedSchedule[] {
  const checked = schedules.map((schedule, i) => checkSchedule(schedule, anchor, `${path}.${i}`));
  const errors = checked.flatMap((one) => ('errors' in one ? one.errors : []));
  if (errors.length > 0) throw invalidInput(errors);
  return checked as CheckedSchedule[];
}

/** `anchor` is what an interval is measured from. */
export function checkSchedule(
  given: CreateSchedule,
  anchor: Date,
  path: string,
): CheckedSchedule | { errors: FieldError[] } {
  const other = given.type === 'cron' ? 'interval' : 'cron';
  const errors: FieldError[] = fieldsOf[other]
    .filter((name) => given[name] !== undefined && given[name] !== null)
    .map((name) => ({ path: name, message: `is for schedules of the type ${other} only` }));
  const times = parseTiming(given as Timing, anchor);
  if ('errors' in times) errors.push(...times.errors);
  errors.push(...templateFaults(given.resource_name_template ?? defaultTemplate));
  const retention = given.retention_time ? durationMs(given.retention_time) : null;
  if (retention === 0) {
    errors.push({ path: 'retention_time', message: `needs one of ${durationNames.join(', ')} that is more than 0` });
  }
  if (errors.length === 0 && !('errors' in times)) {
    return { given, times, retentionSeconds: retention === null ? null : retention / 1000 };
  }
  return { errors: errors.map((error) => ({ ...error, path: error.path ? `${path}.${error.path}` : path })) };
}

function templateFaults(template: string): FieldError[] {
  const path = 'resource_name_template';
  const known = placeholders.map((name) => `{${name}}`).join(', ');
  const unknown = [...template.matchAll(/\{([^{}]*)\}/g)].filter(
    ([, name]) => !(placeholders as readonly string[]).includes(name!),
  );
  if (unknown.length > 0) {
    return unknown.map(([text]) => ({ path, message: `${text} is no placeholder; there are ${known}` }));
  }
  if (!/[{}]/.test(template.replaceAll(/\{[^{}]*\}/g, ''))) return [];
  return [{ path, message: `has a brace that is no part of a placeholder; there are ${known}` }];
}

/** The name of a snapshot that a schedule makes. */
export function snapshotName(
  schedule: Pick<ScheduleRow, 'id' | 'policyId' | 'given'>,
  volumeId: string,
  scheduledAt: Date,
): string {
  const values: Record<(typeof placeholders)[number], string> = {
    volume_id: volumeId,
    lifecycle_policy_id: String(schedule.policyId),
    schedule_id: schedule.id,
    scheduled_at: withZone(scheduledAt),
  };
  const template = schedule.given.resource_name_template ?? defaultTemplate;
  return template.replaceAll(/\{(\w+)\}/g, (text, name: keyof typeof values) => values[name] ?? text);
}

/** The times of a schedule that was checked when it was given. @throws when it cannot be understood any more */
export function timesOf({ id, given, createdAt }: Pick<ScheduleRow, 'id' | 'given' | 'createdAt'>): FireTimes {
  const times = parseTiming(given as Timing, createdAt);
  if ('errors' in times) throw new Error(`schedule ${id}: ${times.errors.map((error) => error.message).join('; ')}`);
  return times;
}

/** Whether two schedules say the same. */
export function sameSchedule(a: CreateSchedule, b: CreateSchedule): boolean {
  return isDeepStrictEqual(presentGiven(a), presentGiven(b));
}

/** As it was given: what was not given is null, and what has a default shows it. */
function presentGiven(given: CreateSchedule) {
  const retention = given.retention_time ? presentDuration(given.retention_time) : null;
  const common = {
    max_quantity: given.max_quantity ?? defaultQuantity,
    resource_name_template: given.resource_name_template ?? defaultTemplate,
    retention_time: retention,
  };
  if (given.type === 'interval') return { ...common, type: given.type, ...presentDuration(given) };
  const { month = null, day = null, week = null, day_of_week = null, hour = null, minute = null } = given;
  const timezone = given.timezone ?? 'UTC';
  return { ...common, type: given.type, month, day, week, day_of_week, hour, minute, timezone };
}

export function presentSchedule(schedule: ScheduleRow): Schedule {
  const { id, policyId, userId, given } = schedule;
  return { id, owner: 'lifecycle_policy', owner_id: policyId, user_id: userId, ...presentGiven(given) };
}

function presentDuration({ weeks = null, days = null, hours = null, minutes = null }: Duration) {
  return { weeks, days, hours, minutes };
}

/** Fire times that are looked at to see how many come within the retention time. */
const longestLook = 10_000;

/** The most snapshots of one volume that a schedule keeps at a time, by number and by age: what is stricter wins. */
export async function mostKept({ given, times, retentionSeconds }: CheckedSchedule, from: Date): Promise<number> {
  const quantity = given.max_quantity ?? defaultQuantity;
  if (retentionSeconds === null) return quantity;
  if (given.type === 'interval') return Math.min(quantity, Math.ceil((retentionSeconds * 1000) / durationMs(given)));
  const recent: number[] = [];
  const pause = createPause();
  let most = 1;
  let next = times.next(from);
  for (let i = 0; next && most < quantity; i++, next = times.next(next)) {
    await pause();
    // Looked at for too short to know: as many as may be.
    if (i === longestLook) return next.getTime() - from.getTime() < retentionSeconds * 1000 ? quantity : most;
    const at = next.getTime();
    recent.push(at);
    while (recent[0]! <= at - retentionSeconds * 1000) recent.shift();
    most = Math.max(most, recent.length);
  }
  return Math.min(most, quantity);
}

/** The instant as clocks of the zone show it: `2026-03-29T03:00:00+02:00`. */
export function localTime(instant: Date, { zone }: FireTimes): string {
  const offset = zone.offsetAt(Math.floor(instant.getTime() / 1000));
  const shown = new Date(instant.getTime() + offset * 1000).toISOString().slice(0, 19);
  const size = Math.abs(offset);
  const parts = [size / 3600, (size / 60) % 60, size % 60].map((part) => String(Math.floor(part)).padStart(2, '0'));
  return `${shown}${offset < 0 ? '-' : '+'}${parts.slice(0, size % 60 === 0 ? 2 : 3).join(':')}`;
}
