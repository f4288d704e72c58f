/**
 * CLOUDYARD_BACKUP_SCHEDULE: the five fields of a crontab and optionally a time zone, by the rules of the cron schedules of
 * lifecycle policies. Weekdays are names, because crontab and those rules number them differently.
 */
import type { NextInstant } from '../backup/schedule.ts';
import { parseTiming } from '../resources/lifecycle-policies/fire-times.ts';

const form = 'MINUTE HOUR DAY MONTH DAY_OF_WEEK [ZONE], such as `30 3 * * *` or `0 */6 * * mon-fri Europe/Berlin`';

/**
 * `now`: the anchor of the schedule. `error`: why the text is invalid, as a continuation of the name of the setting.
 */
export function parseBackupSchedule(text: string, now: Date): { next: NextInstant } | { error: string } {
  const [minute = '', hour = '', day = '', month = '', weekday = '', timezone, ...rest] = text.trim().split(/\s+/);
  if (weekday === '' || rest.length > 0) return { error: `must be ${form}` };
  if (/\d/.test(weekday.replace(/\d(st|nd|rd|th)\b/g, ''))) return { error: 'must name weekdays: mon, tue, …' };
  // A crontab has no least significant field: `*` means every one.
  const fields = { minute, hour, day, month, day_of_week: weekday };
  const timing = parseTiming({ type: 'cron', ...fields, timezone: timezone ?? 'UTC' }, now);
  if ('errors' in timing) {
    return { error: timing.errors.map(({ path, message }) => [path, message].filter(Boolean).join(' ')).join('; ') };
  }
  return { next: timing.next };
}
