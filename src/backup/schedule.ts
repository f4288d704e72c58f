/**
 * Scheduled backups (CLOUDYARD_BACKUP_SCHEDULE). Every server and worker polls, and one of them makes each backup.
 *
 * Invariant: an instant of the schedule is claimed by inserting its row, under the lock of backups, so it runs once. After a
 * downtime only the newest instant that was missed runs. A run whose process died is claimed again by another one.
 *
 * Failure modes: runs of the future do not count. They were made before the clock was set back, and no backup would be made, nor be
 * late, until the clock reached them.
 */
import { daysBefore } from '../platform/clock.ts';
import type { Db, Tx } from '../platform/db.ts';

/** The first instant strictly after the given one. */
export type NextInstant = (after: Date) => Date | null;

interface BackupState {
  /** When the last successful backup was due and when it ended; null: none. */
  lastSuccess: { scheduledAt: Date; endedAt: Date } | null;
  /** Of the newest run; null if it succeeded or runs. */
  lastError: string | null;
}

/** A backup may take this long before it counts as late. */
export const lateAfterMs = 3_600_000;

/** The newest instant that is due: `now` or before, after the last run, or after `since` if there was none. */
export function dueInstant(next: NextInstant, lastRun: Date | null, since: Date, now: Date): Date | null {
  let due: Date | null = null;
  // A year of a schedule that fires every minute has half a million instants, so it starts a day back at most.
  const dayAgo = daysBefore(now, 1);
  const start = lastRun ?? since;
  let instant = next(start);
  if (instant !== null && instant <= dayAgo) {
    due = instant;
    instant = next(dayAgo);
  }
  for (; instant !== null && instant <= now; instant = next(instant)) due = instant;
  return due;
}

/** How long the next backup after the last success has been due; 0 if it is not. */
export function latenessMs(next: NextInstant, { lastSuccess }: BackupState, since: Date, now: Date): number {
  const due = next(lastSuccess?.scheduledAt ?? since);
  return due === null ? 0 : Math.max(0, now.getTime() - due.getTime());
}

/** The time from which the first backup of a process is due: its start, or when the clock was set back before that. */
export function createStart(now: Date): (now: Date) => Date {
  let since = now;
  return (at) => (since = at < since ? at : since);
}

/** Reads the newest run and the newest successful one. */
export async function backupState({ $client }: Pick<Tx, '$client'>, now: Date): Promise<BackupState> {
  const { rows } = await $client.query<{
    scheduled_at: Date;
    ended_at: Date | null;
    error: string | null;
    id: string | null;
  }>(
    `select scheduled_at, ended_at, error, backup_id as id from (
       (select * from backup_runs where scheduled_at <= $1 order by scheduled_at desc limit 1)
       union (select * from backup_runs where scheduled_at <= $1 and backup_id is not null order by scheduled_at desc limit 1)
     ) as newest order by scheduled_at desc`,
    [now],
  );
  const success = rows.find(({ id }) => id !== null);
  return {
    lastSuccess: success ? { scheduledAt: success.scheduled_at, endedAt: success.ended_at! } : null,
    lastError: rows[0]?.error ?? null,
  };
}

/** The last scheduled instant whose backup ended, in success or failure; null: none did. */
export async function lastRun(db: Db, now: Date): Promise<Date | null> {
  const { rows } = await db.$client.query<{ at: Date | null }>(
    'select max(scheduled_at) as at from backup_runs where ended_at is not null and scheduled_at <= $1',
    [now],
  );
  return rows[0]!.at;
}

/** Returns false if another process has claimed the instant. The caller holds the lock of backups, so no other one runs. */
export async function claim(db: Db, scheduledAt: Date, host: string): Promise<boolean> {
  const { rowCount } = await db.$client.query(
    `insert into backup_runs (scheduled_at, started_at, host) values ($1, now(), $2)
     on conflict (scheduled_at) do update set started_at = now(), host = excluded.host where backup_runs.ended_at is null`,
    [scheduledAt, host],
  );
  return rowCount === 1;
}

/** Records how the claimed run ended, and removes runs that are older than 400 days. */
export async function recordEnd(
  db: Db,
  scheduledAt: Date,
  end: { backupId: string } | { error: string },
): Promise<void> {
  const { backupId, error } = { backupId: null, error: null, ...end };
  await db.$client.query(
    'update backup_runs set ended_at = now(), backup_id = $2, error = $3 where scheduled_at = $1',
    [scheduledAt, backupId, error],
  );
  await db.$client.query(`delete from backup_runs where scheduled_at < now() - interval '400 days'`);
}
