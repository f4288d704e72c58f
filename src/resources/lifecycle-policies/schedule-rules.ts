/** Schedules apart from their times: validation, responses, and the number of snapshots that they retain. */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { FieldError } from '../../errors/catalogue.ts';
import type { ValidFields } from '../../errors/valid-fields.ts';
import { withZone } from '../../platform/clock.ts';
import { createPause } from '../../platform/event-loop.ts';
import { cronFieldNames } from './cron.ts';
import { type Duration, durationMs, type FireTimes, lastYear, parseTiming, type Timing } from './fire-times.ts';
import {
  type CreateSchedule,
  defaultQuantity,
  defaultTemplate,
  placeholders,
  type Schedule,
  type UpdateSchedule,
} from './schedule/schema.ts';
import type { ScheduleRow } from './store.ts';

const durationNames = ['weeks', 'days', 'hours', 'minutes'] as const;
const fieldsOf = { cron: [...cronFieldNames, 'timezone'], interval: durationNames } as const;

/** A valid schedule with its times. */
export interface CheckedSchedule {
  given: CreateSchedule;
  times: FireTimes;
  /** Null: retained by number alone. */
  retentionSeconds: number | null;
}

/** The valid schedules, and all errors in the others. */
export function readSchedules(
  schedules: CreateSchedule[],
  anchor: Date,
): { checked: CheckedSchedule[]; errors: FieldError[] } {
  const results = schedules.map((schedule, i) => checkSchedule(schedule, anchor, `schedules.${i}`));
  return {
    checked: results.flatMap((one) => ('errors' in one ? [] : [one])),
    errors: results.flatMap((one) => ('errors' in one ? one.errors : [])),
  };
}

/** The errors in schedules of which some fields are invalid. */
export function errorsOfSchedules(schedules: ValidFields<CreateSchedule>[], anchor: Date): FieldError[] {
  return schedules.flatMap(({ type, ...given }, i) => {
    // The type decides which rules apply.
    const checked = type && checkSchedule({ ...given, type }, anchor, `schedules.${i}`);
    return checked && 'errors' in checked ? checked.errors : [];
  });
}

/** `anchor` is the start of an interval. `path` is that of the schedule in the body; empty: it is the body. */
export function checkSchedule(
  given: CreateSchedule,
  anchor: Date,
  path: string,
): CheckedSchedule | { errors: FieldError[] } {
  const other = given.type === 'cron' ? 'interval' : 'cron';
  const errors: FieldError[] = fieldsOf[other]
    .filter((name) => given[name] !== undefined && given[name] !== null)
    .map((name) => ({ path: name, message: `is supported by schedules of type ${other} only` }));
  const times = parseTiming(given as Timing, anchor);
  if ('errors' in times) errors.push(...times.errors);
  errors.push(...templateErrors(given.resource_name_template ?? defaultTemplate));
  const retention = given.retention_time ? durationMs(given.retention_time) : null;
  if (retention === 0) {
    errors.push({
      path: 'retention_time',
      message: `must have at least one of ${durationNames.join(', ')} greater than 0`,
    });
  } else if (retention !== null && expiryAfter(anchor, retention / 1000) === null) {
    errors.push({ path: 'retention_time', message: `must end before the year ${lastYear + 1}` });
  }
  if (errors.length === 0 && !('errors' in times)) {
    return { given, times, retentionSeconds: retention === null ? null : retention / 1000 };
  }
  return { errors: errors.map((error) => ({ ...error, path: [path, error.path].filter(Boolean).join('.') })) };
}

/** When a snapshot of this time expires by its age; null: never before the year 10000, which no date of the API can show. */
export function expiryAfter(createdAt: Date, retentionSeconds: number): Date | null {
  const at = new Date(createdAt.getTime() + retentionSeconds * 1000);
  return at.getUTCFullYear() <= lastYear ? at : null;
}

function templateErrors(template: string): FieldError[] {
  const path = 'resource_name_template';
  const known = placeholders.map((name) => `{${name}}`).join(', ');
  const unknown = [...template.matchAll(/\{([^{}]*)\}/g)].filter(
    ([, name]) => !(placeholders as readonly string[]).includes(name!),
  );
  if (unknown.length > 0) {
    return unknown.map(([text]) => ({ path, message: `${text} is not a placeholder; use ${known}` }));
  }
  if (!/[{}]/.test(template.replaceAll(/\{[^{}]*\}/g, ''))) return [];
  return [{ path, message: `has a brace outside a placeholder; use ${known}` }];
}

/** The name of a snapshot that a schedule creates. */
function snapshotName(
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

/** The run volumes of a new run. */
export function newRunVolumes(
  schedule: Pick<ScheduleRow, 'id' | 'policyId' | 'regionId' | 'given'>,
  { id: runId, scheduledAt }: { id: string; scheduledAt: Date },
  volumes: { volumeId: string }[],
) {
  return volumes.map(({ volumeId }) => ({
    id: randomUUID(),
    runId,
    regionId: schedule.regionId,
    volumeId,
    name: snapshotName(schedule, volumeId, scheduledAt),
  }));
}

/** The times of a stored schedule. @throws when it is no longer valid, for instance because its zone was removed */
export function timesOf({ id, given, createdAt }: Pick<ScheduleRow, 'id' | 'given' | 'createdAt'>): FireTimes {
  const times = parseTiming(given as Timing, createdAt);
  if ('errors' in times) throw new Error(`schedule ${id}: ${times.errors.map((error) => error.message).join('; ')}`);
  return times;
}

/**
 * A schedule after a patch: absent fields keep their value, null removes it. Another type keeps the fields that both have.
 * The older Go client sends an empty retention time if there is none to set, which keeps the value, too.
 */
export function patchedSchedule(given: CreateSchedule, patch: UpdateSchedule): CreateSchedule {
  const { max_quantity, resource_name_template, retention_time } = given;
  const isSameType = patch.type === undefined || patch.type === given.type;
  const kept = isSameType ? given : { max_quantity, resource_name_template, retention_time };
  const isUnset = patch.retention_time && Object.keys(patch.retention_time).length === 0;
  return { ...kept, ...patch, ...(isUnset && { retention_time }), type: patch.type ?? given.type };
}

/** The errors in a patch of which some fields are invalid, whatever the schedule is. */
export function errorsOfPatch(patch: ValidFields<UpdateSchedule>, anchor: Date): FieldError[] {
  const checked = checkSchedule(patchedSchedule({ type: 'cron' }, patch as UpdateSchedule), anchor, '');
  const errors = 'errors' in checked ? checked.errors : [];
  const isKnown = (path: string) => patch.type !== undefined || !durationNames.some((name) => name === path);
  return errors.filter(({ path }) => path in patch && isKnown(path));
}

/** Whether two schedules run at the same times. Intervals of the same length do: `hours: 6` is `hours: 6, minutes: 0`. */
export function isSameTiming(a: CreateSchedule, b: CreateSchedule): boolean {
  const timingOf = (given: CreateSchedule) => {
    if (given.type === 'interval') return durationMs(given);
    const { max_quantity: _q, resource_name_template: _t, retention_time: _r, ...timing } = toGiven(given);
    return timing;
  };
  return isDeepStrictEqual(timingOf(a), timingOf(b));
}

/** Whether two requests mean the same schedule: omitted fields equal their defaults. */
export function isSameSchedule(a: CreateSchedule, b: CreateSchedule): boolean {
  return isDeepStrictEqual(toGiven(a), toGiven(b));
}

/** The schedule as the request gave it, with defaults; other omitted fields are null. */
function toGiven(given: CreateSchedule) {
  const retention = given.retention_time ? toDuration(given.retention_time) : null;
  const common = {
    max_quantity: given.max_quantity ?? defaultQuantity,
    resource_name_template: given.resource_name_template ?? defaultTemplate,
    retention_time: retention,
  };
  if (given.type === 'interval') return { ...common, type: given.type, ...toDuration(given) };
  const { month = null, day = null, week = null, day_of_week = null, hour = null, minute = null } = given;
  const timezone = given.timezone ?? 'UTC';
  return { ...common, type: given.type, month, day, week, day_of_week, hour, minute, timezone };
}

export function toSchedule(schedule: ScheduleRow): Schedule {
  const { id, policyId, userId, given } = schedule;
  return { id, owner: 'lifecycle_policy', owner_id: policyId, user_id: userId, ...toGiven(given) };
}

function toDuration({ weeks = null, days = null, hours = null, minutes = null }: Duration) {
  return { weeks, days, hours, minutes };
}

/** The number of fire times that are examined to find how many are within the retention time. */
const maxFireTimes = 10_000;

/** The maximum number of snapshots of a volume that a schedule retains, by number and by age, whichever is stricter. */
export async function maxRetained({ given, times, retentionSeconds }: CheckedSchedule, from: Date): Promise<number> {
  const quantity = given.max_quantity ?? defaultQuantity;
  if (retentionSeconds === null) return quantity;
  if (given.type === 'interval') return Math.min(quantity, Math.ceil((retentionSeconds * 1000) / durationMs(given)));
  const recent: number[] = [];
  const pause = createPause();
  let most = 1;
  let next = times.next(from);
  for (let i = 0; next && most < quantity; i++, next = times.next(next)) {
    await pause();
    // The examined time is too short to know, so the result is the upper bound.
    if (i === maxFireTimes) return next.getTime() - from.getTime() < retentionSeconds * 1000 ? quantity : most;
    const at = next.getTime();
    recent.push(at);
    while (recent[0]! <= at - retentionSeconds * 1000) recent.shift();
    most = Math.max(most, recent.length);
  }
  return Math.min(most, quantity);
}

/** The instant in the local time of the schedule: `2026-03-29T03:00:00+02:00`. */
export function localTime(instant: Date, { zone }: FireTimes): string {
  const offset = zone.offsetAt(Math.floor(instant.getTime() / 1000));
  const shown = new Date(instant.getTime() + offset * 1000).toISOString().slice(0, 19);
  const size = Math.abs(offset);
  const parts = [size / 3600, (size / 60) % 60, size % 60].map((part) => String(Math.floor(part)).padStart(2, '0'));
  return `${shown}${offset < 0 ? '-' : '+'}${parts.slice(0, size % 60 === 0 ? 2 : 3).join(':')}`;
}
