/**
 * The duty that makes scheduled backups, removes old ones, and notifies the operator of those that fail or are late. It runs
 * in every server and worker; src/backup/schedule.ts explains how one of them makes a backup.
 */
import { hostname } from 'node:os';
import type pg from 'pg';
import { BackupRunning, withBackupLock, writeBackup } from '../backup/backup.ts';
import { type BackupDirectory, type BackupSink, openBackupDirectory } from '../backup/block-store.ts';
import { copyFiles, hasFiles } from '../backup/files.ts';
import {
  backupState,
  claim,
  createStart,
  dueInstant,
  lastRun,
  lateAfterMs,
  latenessMs,
  type NextInstant,
  recordEnd,
} from '../backup/schedule.ts';
import { type ConnectionOptions, type Db, transaction } from '../platform/db.ts';
import type { Logger } from '../platform/log.ts';
import type { Metrics } from '../platform/metrics.ts';
import type { Message, Notifications } from '../resources/notifications/service.ts';
import type { Settings } from './settings.ts';

interface ScheduledBackupDeps {
  settings: Settings;
  next: NextInstant;
  db: Db;
  connection: ConnectionOptions;
  log: Logger;
  notifications: Pick<Notifications, 'issue' | 'issueOnce'>;
  operatorId: number;
  now(): Date;
}

/** Returns the work to call periodically. */
export function createScheduledBackups(deps: ScheduledBackupDeps): (signal: AbortSignal) => Promise<void> {
  const { settings, next, db, log, now } = deps;
  const sinceAt = createStart(now());
  /** Whether this process, such as an API server, leaves backups to workers, because it does not have the tenants' data. */
  const lacksData = () => settings.backup.withData && !hasFiles(settings.dataDir);
  const waitedMs = createWait(now);
  /** The last success for which a late backup was reported, by any process. Saves its query at each call. */
  let reportedLate: number | undefined;

  const reportLate = async () => {
    const at = now();
    const state = await backupState(db, at);
    const lateness = latenessMs(next, state, sinceAt(at), at);
    if (lateness < lateAfterMs) return;
    const last = state.lastSuccess?.scheduledAt.getTime() ?? 0;
    if (reportedLate === last) return;
    const lastEnd = state.lastSuccess?.endedAt ?? null;
    const message = lateMessage(deps.operatorId, { lastEnd, lateness, lacksData: lacksData() });
    await transaction(db, (tx) => deps.notifications.issueOnce(tx, message, lastEnd ?? new Date(0)));
    reportedLate = last;
  };

  const make = async (client: pg.Client, due: Date, signal: AbortSignal) => {
    const store = await openBackupDirectory(settings.backup.dir);
    const id = await backUp(deps, store, client, signal);
    await recordEnd(db, due, { backupId: id });
    const made = { backup: id, dir: settings.backup.dir };
    if (lacksData()) log.warn(made, 'scheduled backup made without data of tenants: no worker that has them made one');
    else log.info(made, 'scheduled backup made');
    await removeOld(store, settings.backup, id).catch((error: unknown) => {
      log.error({ err: error, dir: settings.backup.dir }, 'old backups cannot be removed');
    });
  };

  const recordFailure = async (due: Date, error: Error) => {
    const { message } = error;
    log.error({ err: error }, 'the scheduled backup failed');
    await recordEnd(db, due, { error: message });
    await transaction(db, (tx) => deps.notifications.issue(tx, failureMessage(deps.operatorId, due, message)));
  };

  const run = (due: Date, signal: AbortSignal) =>
    withBackupLock(deps.connection, {}, async (client) => {
      if (!(await claim(db, due, hostname()))) return;
      // Under the lock: another process claims a backup whose end is not recorded.
      await make(client, due, signal).catch(async (error: Error) => {
        // When this process stops, another one makes it.
        if (!signal.aborted) await recordFailure(due, error);
      });
    }).catch((error: unknown) => {
      if (!(error instanceof BackupRunning)) throw error;
    });

  return async (signal) => {
    const at = now();
    const last = await lastRun(db, at);
    const due = dueInstant(next, last, sinceAt(at), at);
    if (due && !lacksData()) await run(due, signal);
    else if (due && waitedMs(last) >= lateAfterMs) {
      // Before it succeeds, because it lacks data.
      await reportLate();
      await run(due, signal);
    }
    await reportLate();
  };
}

/** `lastEnd`: of the last success. `lateness`: milliseconds. */
function lateMessage(
  operatorId: number,
  { lastEnd, lateness, lacksData }: { lastEnd: Date | null; lateness: number; lacksData: boolean },
): Message {
  const ended = lastEnd?.toISOString() ?? null;
  const last = ended ? `The last successful backup ended at ${ended}.` : 'No scheduled backup has succeeded.';
  const without = lacksData ? ['If no worker with data of tenants makes it, it is made without them.'] : [];
  return {
    ...{ clientId: operatorId, type: 'backup_late', subject: 'The scheduled backup is late' },
    body: { paragraphs: [last, ...without] },
    data: { last_success: ended, late_seconds: Math.round(lateness / 1000) },
  };
}

function failureMessage(operatorId: number, due: Date, error: string): Message {
  const [host, scheduled] = [hostname(), due.toISOString()];
  return {
    ...{ clientId: operatorId, type: 'backup_failed', subject: `The backup of ${scheduled} failed` },
    body: { paragraphs: [`On host ${host}:`, error] },
    data: { host, scheduled_at: scheduled, error },
  };
}

/** How long a process has left the backups after the last run to others. A run of hours that ends begins the wait again. */
function createWait(now: () => Date): (last: Date | null) => number {
  let began = { last: NaN, at: 0 };
  return (last) => {
    const key = last?.getTime() ?? 0;
    if (began.last !== key) began = { last: key, at: now().getTime() };
    return now().getTime() - began.at;
  };
}

/** Makes the backup. Returns its id. */
async function backUp(
  { settings, connection, log }: ScheduledBackupDeps,
  store: BackupDirectory,
  client: pg.Client,
  signal: AbortSignal,
): Promise<string> {
  const { backupOptions } = await import('./backups.ts');
  const withData = settings.backup.withData && hasFiles(settings.dataDir);
  const sink: BackupSink = {
    ...store,
    putBlock(plain) {
      signal.throwIfAborted();
      return store.putBlock(plain);
    },
  };
  const files = (to: BackupSink) =>
    copyFiles(settings.dataDir, to, (path) =>
      log.warn({ path }, 'a folder of a share is too deep: its contents are not in the backup'),
    );
  const options = backupOptions(settings, connection, 'schedule', withData ? files : null);
  return (await writeBackup(client, options, sink)).id;
}

/**
 * Removes old backups of the schedule. The newest one with data stays, also when later ones were made without. `made`: the newest
 * one. Those with a later time were made before the clock was set back.
 * @throws BackupError if a manifest is damaged, because its blocks are unknown
 */
async function removeOld(store: BackupDirectory, { keep, withData }: Settings['backup'], made: string): Promise<void> {
  const scheduled: string[] = [];
  let newestWithData: string | null = null;
  const ids = await store.list();
  for (const each of [...ids.filter((id) => id > made), ...ids.filter((id) => id <= made)]) {
    const { reason, files } = await store.manifest(each);
    if (reason !== 'schedule') continue;
    scheduled.push(each);
    if (withData && files) newestWithData = each;
  }
  const old = scheduled.slice(0, Math.max(0, scheduled.length - keep)).filter((each) => each !== newestWithData);
  for (const each of old) await store.remove(each);
  if (old.length > 0) await store.prune();
}

/** Adds the gauges of scheduled backups. A late one is reported from `cloudyard_backup_late_seconds`. */
export function watchBackups(metrics: Metrics, next: NextInstant, db: Db): void {
  const sinceAt = createStart(new Date());
  metrics.watchBackups(async () => {
    const now = new Date();
    const state = await backupState(db, now);
    const last = state.lastSuccess?.endedAt.getTime();
    return {
      lastSuccessSeconds: last === undefined ? 0 : last / 1000,
      lateSeconds: latenessMs(next, state, sinceAt(now), now) / 1000,
      hasFailed: state.lastError !== null,
    };
  });
}
