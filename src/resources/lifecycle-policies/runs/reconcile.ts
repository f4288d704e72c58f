/**
 * The scheduler, as periodic scans. The first writes a run, a run volume for each of its volumes, and the next instant of
 * the schedule in one transaction. It then requests the snapshots, set by set, in transactions that record their ids; a
 * second scan requests the remaining ones. A third scan settles each run volume whose snapshot is complete or failed, and
 * expires older snapshots. The run ends when its last run volume is settled.
 *
 * Invariant: each instant runs once, with any number of workers, even if workers die.
 * Failure modes: a snapshot that hangs delays only its run volume. After downtime a schedule runs once, for the
 * oldest missed instant; the others are skipped.
 */
import { randomUUID } from 'node:crypto';
import { ClientError } from '../../../errors/catalogue.ts';
import { type Clock, daysBefore } from '../../../platform/clock.ts';
import { type Db, transaction, type Tx } from '../../../platform/db.ts';
import { isUnavailable } from '../../../platform/db-errors.ts';
import type { Logger } from '../../../platform/log.ts';
import { policyTag } from '../../../tags/tags.ts';
import type { Tasks } from '../../../tasks/tasks.ts';
import type { SnapshotRun } from '../../snapshots/of-runs.ts';
import {
  contextOf,
  expireDue,
  expireOld,
  makeRoom,
  retryExpiry,
  type SnapshotsOfRetention,
} from '../retention/reconcile.ts';
import { findExpiring, findFailed } from '../retention/store.ts';
import { expiryAfter, timesOf, newRunVolumes } from '../schedule-rules.ts';
import { setNextRuns } from '../store.ts';
import * as store from './store.ts';
import type { DueSchedule, PendingRunVolume, RunVolume } from './store.ts';
import { type LateRun, recordStarted } from '../missed-runs/store.ts';
import { createReschedule } from './reschedule.ts';
import { failureOf, taskErrorOf } from './failure.ts';

/** The part of the service of snapshots that runs need. */
interface SnapshotsOfRuns extends SnapshotsOfRetention {
  createForRuns(tx: Tx, runs: SnapshotRun[]): Promise<{ snapshotId: string }[]>;
}

export interface LifecyclePolicyRunDeps {
  db: Db;
  clock: Clock;
  snapshots: SnapshotsOfRuns;
  tasks: Pick<Tasks, 'setRunning' | 'finish' | 'fail'>;
  log: Logger;
  /** Notifies the client that a schedule has begun to fail, in the transaction that records it. */
  notify(tx: Tx, failure: ReturnType<typeof failureOf>): Promise<unknown>;
  /** A run that starts later than this is recorded for a notification. */
  missedRuns: { lateSeconds: number };
  metrics: { countMissedRuns(late: number, skipped: number): void };
}

/** Requests the snapshots of a set of run volumes, all or none. */
function requestSnapshots({ db, snapshots, tasks }: LifecyclePolicyRunDeps, ids: string[]): Promise<void> {
  return withLockTimeout(db, async (tx) => {
    const claimed = await store.claimPendingRunVolumes(tx, ids);
    if (claimed.length === 0) return;
    const made = await snapshots.createForRuns(tx, claimed.map(snapshotOf));
    await store.setRunVolumesRunning(
      tx,
      claimed.map(({ id }) => id),
      made.map(({ snapshotId }) => snapshotId),
    );
    const requested = claimed.flatMap(({ taskId, runId }) => (taskId === null ? [] : [runId]));
    if (requested.length > 0) await tasks.setRunning(tx, [...new Set(requested)]);
  });
}

function snapshotOf(runVolume: PendingRunVolume): SnapshotRun {
  const { volumeId, policyId, scheduleId, scheduledAt, name } = runVolume;
  const tags = { [policyTag]: { value: String(policyId), read_only: true } };
  return { context: contextOf(runVolume), volumeId, lifecyclePolicyId: policyId, scheduleId, scheduledAt, name, tags };
}

/**
 * Requests snapshots and records a permanent failure: in a set of one, the volume does not exist, or the quota is used up
 * and no older snapshot can be deleted.
 */
async function requestOrFail(deps: LifecyclePolicyRunDeps, ids: string[]): Promise<void> {
  try {
    await requestSnapshots(deps, ids);
  } catch (error) {
    if (ids.length > 1 || !(error instanceof ClientError)) throw error;
    await endSettledRuns(deps, [await withLockTimeout(deps.db, (tx) => handleRefusal(deps, tx, ids[0]!, error))]);
  }
}

/** Returns the run, if this settled one of its run volumes. */
async function handleRefusal(
  deps: LifecyclePolicyRunDeps,
  tx: Tx,
  id: string,
  error: ClientError,
): Promise<string | null> {
  const waits = error.code === 'QuotaExceeded' && (await makeRoom(deps, tx, id, error.message));
  return waits ? null : recordFailure(tx, id, error.message);
}

/** Returns the run, if this settled one of its run volumes. */
async function recordFailure(tx: Tx, id: string, message: string): Promise<string | null> {
  const [runVolume] = await store.lockRunVolumes(tx, [id]);
  if (runVolume?.state !== 'pending') return null;
  await store.updateRunVolume(tx, id, { state: 'failed', message });
  return runVolume.runId;
}

/**
 * Ends the runs whose run volumes are all settled, and notifies the clients whose schedules begin to fail. Call it after
 * the commit that settled some: of concurrent transactions, the last one then finds all of them settled.
 */
async function endSettledRuns(deps: LifecyclePolicyRunDeps, runIds: (string | null)[]): Promise<void> {
  const touched = [...new Set(runIds)].filter((id) => id !== null);
  await endRuns(deps, await store.findRunsToEnd(deps.db, touched));
}

async function endRuns({ db, clock, tasks, notify }: LifecyclePolicyRunDeps, runIds: string[]): Promise<void> {
  if (runIds.length === 0) return;
  await transaction(db, async (tx) => {
    // More than once only if several runs of a schedule are to end.
    for (let left = runIds.length; left > 0; ) {
      const ended = await store.endRuns(tx, runIds, clock.now());
      for (const { id, taskId, failed, beganToFail } of ended) {
        const report = beganToFail || (failed && taskId !== null) ? await store.readReport(tx, id) : null;
        if (beganToFail) await notify(tx, failureOf(report!));
        if (taskId === null) continue;
        await (failed ? tasks.fail(tx, id, 1, taskErrorOf(report!)) : tasks.finish(tx, id, 1));
      }
      left = ended.length === 0 ? 0 : left - ended.length;
    }
  });
}

/** Rows per transaction. */
const batch = 250;
/** Run volumes of due schedules per statement, so that requests of the API do not wait for all of them. */
const insertedRows = 5000;
/** After this time a scan leaves the other requests to the next one, so that those of a client do not delay those of new runs. */
const requestMs = 15_000;
const retentionDays = 90;

type DutyDeps = LifecyclePolicyRunDeps & { regionIds: number[] };

/** The scans, each with its own timer, so that a slow one cannot delay the start of runs. */
export function createLifecyclePolicyDuties(
  deps: DutyDeps & { pollSeconds: number },
): { seconds: number; work(): Promise<unknown> }[] {
  const { db, clock, regionIds, pollSeconds } = deps;
  const settleAll = async (ids: string[]) =>
    endSettledRuns(deps, await withLockTimeout(db, (tx) => settle(deps, tx, ids)));
  return [
    { seconds: pollSeconds, work: () => startAndRequest(deps) },
    // Snapshots whose first request failed, or whose worker died.
    {
      seconds: 4 * pollSeconds,
      work: async () =>
        inSets(await store.findPendingRunVolumes(db, regionIds), (ids) => requestOrFail(deps, ids), requestMs),
    },
    {
      seconds: pollSeconds,
      work: async () => inSets(await store.findRunVolumesToSettle(db, regionIds), settleAll),
    },
    {
      seconds: pollSeconds,
      work: async () =>
        inSets(await findExpiring(db, regionIds, clock.now(), batch), (ids) =>
          withLockTimeout(db, (tx) => expireDue(deps, tx, ids)),
        ),
    },
    // Runs whose worker died between settling the last run volume and ending the run.
    {
      seconds: 120 * pollSeconds,
      work: async () => inSets(await store.findAbandonedRuns(db, regionIds, batch), (ids) => endRuns(deps, ids)),
    },
    {
      seconds: 4 * pollSeconds,
      work: async () =>
        inSets(await findFailed(db, regionIds, clock.now(), batch), (failed) =>
          withLockTimeout(db, (tx) => retryExpiry(deps, tx, failed)),
        ),
    },
    { seconds: 240 * pollSeconds, work: createReschedule(deps) },
    { seconds: 3600, work: () => store.removeOldRuns(db, daysBefore(clock.now(), retentionDays)) },
  ];
}

/** Requests the snapshots of new runs once. Retries may take long and must not delay the next runs. */
export async function startAndRequest(deps: DutyDeps): Promise<void> {
  const runVolumeIds = await startDueRuns(deps);
  const until = performance.now() + requestMs;
  for (const ids of setsOf(runVolumeIds, batch)) {
    // The second scan requests the others.
    if (performance.now() > until) return;
    await requestSnapshots(deps, ids).catch(() => {});
  }
}

/**
 * Starts every due run. Returns the ids of their run volumes, in turns of the clients. Most scans find nothing and cost one
 * statement.
 */
export async function startDueRuns(deps: DutyDeps): Promise<string[]> {
  const started: StartedRunVolume[] = [];
  const next = await store.nextRun(deps.db, deps.regionIds);
  for (let more = next !== null && next <= deps.clock.now(); more; ) {
    const { schedules, runVolumes, late } = await transaction(deps.db, (tx) => startBatch(deps, tx));
    deps.metrics.countMissedRuns(
      late.length,
      late.reduce((sum, run) => sum + run.skipped, 0),
    );
    for (const each of runVolumes) started.push(each);
    more = schedules === batch;
  }
  return inTurns(started);
}

interface StartedRunVolume {
  id: string;
  clientId: number;
}

/** The first one of each client, then the second one of each, and so on. */
function inTurns(all: StartedRunVolume[]): string[] {
  const ofClients = [...Map.groupBy(all, ({ clientId }) => clientId).values()];
  const ids: string[] = [];
  for (let turn = 0; ids.length < all.length; turn += 1) {
    for (const each of ofClients) if (turn < each.length) ids.push(each[turn]!.id);
  }
  return ids;
}

async function startBatch(
  { clock, log, regionIds, missedRuns }: DutyDeps,
  tx: Tx,
): Promise<{ schedules: number; runVolumes: StartedRunVolume[]; late: LateRun[] }> {
  const now = clock.now();
  const due = await store.claimDue(tx, regionIds, now, batch);
  if (due.length === 0) return { schedules: 0, runVolumes: [], late: [] };
  const candidates = await store.findVolumeIdsOfPolicies(tx, [...new Set(due.map(({ policyId }) => policyId))]);
  const byPolicy = Map.groupBy(candidates, ({ policyId }) => policyId);
  const runs = due.map(({ id: scheduleId, policyId, regionId, scheduledAt }) => {
    const doneAt = byPolicy.has(policyId) ? null : now;
    return { id: randomUUID(), scheduleId, policyId, regionId, scheduledAt, taskId: null, doneAt };
  });
  const inserted = await store.insertRuns(tx, runs, now);
  const runVolumes: StartedRunVolume[] = [];
  let rows: ReturnType<typeof newRunVolumes> = [];
  for (const [i, schedule] of due.entries()) {
    if (!inserted.has(runs[i]!.id)) continue;
    for (const each of newRunVolumes(schedule, runs[i]!, byPolicy.get(schedule.policyId) ?? [])) {
      rows.push(each);
      runVolumes.push({ id: each.id, clientId: schedule.clientId });
    }
    if (rows.length < insertedRows) continue;
    await store.insertRunVolumes(tx, rows);
    rows = [];
  }
  await store.insertRunVolumes(tx, rows);
  const next = due.map((schedule) => ({ schedule, ...nextOf(schedule, now, log) }));
  await setNextRuns(
    tx,
    next.map(({ schedule, nextRunAt }) => ({ id: schedule.id, nextRunAt })),
  );
  const lateLimit = now.getTime() - missedRuns.lateSeconds * 1000;
  const late = next
    .filter(({ schedule, skipped }) => skipped > 0 || schedule.scheduledAt.getTime() < lateLimit)
    .map(({ schedule: { id, policyId, scheduledAt }, skipped }) => ({
      policyId,
      scheduleId: id,
      scheduledAt,
      skipped,
    }));
  await recordStarted(tx, late, now);
  return { schedules: due.length, runVolumes, late };
}

/** Instants that are counted; a run that replaces more shows this number. */
const maxSkipped = 1000;

/**
 * The next run, and the number of instants before it that were missed. A schedule that has become invalid (its zone
 * was removed) must not block the others.
 */
function nextOf(schedule: DueSchedule, now: Date, log: Logger): { nextRunAt: Date | null; skipped: number } {
  try {
    const times = timesOf(schedule);
    let skipped = 0;
    let next = times.next(schedule.scheduledAt);
    for (; next && next <= now && skipped < maxSkipped; next = times.next(next)) skipped++;
    return { nextRunAt: next && next <= now ? times.next(now) : next, skipped };
  } catch (error) {
    log.error({ err: error, scheduleId: schedule.id }, 'a schedule has no next run');
    return { nextRunAt: null, skipped: 0 };
  }
}

const setsOf = <T>(all: T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size));

/**
 * Works set by set. A failing set is halved until the failing item is alone, so that it cannot block the others and the
 * quota is used up to the limit. Begins no set after `limitMs`. @throws the error of the first item that failed alone
 */
async function inSets<T>(all: T[], work: (set: T[]) => Promise<unknown>, limitMs = Infinity): Promise<void> {
  const left = setsOf(all, batch);
  const failures: unknown[] = [];
  const until = performance.now() + limitMs;
  for (let set = left.shift(); set && performance.now() < until; set = left.shift()) {
    try {
      await work(set);
    } catch (error) {
      if (isUnavailable(error)) throw error;
      if (set.length === 1) failures.push(error);
      else left.unshift(...setsOf(set, Math.ceil(set.length / 2)));
    }
  }
  if (failures.length > 0) throw failures[0];
}

/** A transaction that fails instead of waiting for a lock that is held longer than any change takes. */
function withLockTimeout<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  return transaction(db, async (tx) => {
    await tx.$client.query(`set local lock_timeout = '1s'`);
    return work(tx);
  });
}

/** Settles the run volumes whose snapshots are complete or failed. Returns their runs. */
async function settle(deps: LifecyclePolicyRunDeps, tx: Tx, ids: string[]): Promise<string[]> {
  const settling = (await store.lockRunVolumes(tx, ids)).filter(
    ({ state, snapshotStatus }) => state === 'running' && snapshotStatus !== 'creating',
  );
  const [made, failed] = [true, false].map((isMade) =>
    settling.filter(({ snapshotStatus }) => (snapshotStatus === 'available') === isMade),
  ) as [RunVolume[], RunVolume[]];
  const removed = await withoutFailedSnapshots(deps, tx, failed);
  await store.settleRunVolumes(tx, [
    ...made.map((each) => ({ id: each.id, state: 'made' as const, message: null, expireAt: expiryOf(each) })),
    ...removed.map(({ id, snapshotError }) => {
      const message = snapshotError ?? 'the snapshot was deleted before it was complete';
      return { id, state: 'failed' as const, message, expireAt: null };
    }),
  ]);
  await expireOld(deps, tx, made);
  return [...made, ...removed].map(({ runId }) => runId);
}

function expiryOf({ expires, retentionSeconds, snapshotCreatedAt }: RunVolume): Date | null {
  return expires && retentionSeconds !== null ? expiryAfter(snapshotCreatedAt!, retentionSeconds) : null;
}

/**
 * Deletes failed snapshots, which are useless. Returns the run volumes whose snapshot is deleted or in deletion; one that
 * is locked is tried again at the next scan.
 */
async function withoutFailedSnapshots(
  { snapshots }: LifecyclePolicyRunDeps,
  tx: Tx,
  runVolumes: RunVolume[],
): Promise<RunVolume[]> {
  const useless = runVolumes.filter(({ snapshotStatus }) => snapshotStatus === 'error');
  const taskIds = await snapshots.expire(
    tx,
    useless.map((runVolume) => ({ context: contextOf(runVolume), id: runVolume.snapshotId! })),
  );
  const locked = new Set(useless.filter((_, i) => taskIds[i] === null));
  return runVolumes.filter((runVolume) => !locked.has(runVolume));
}
