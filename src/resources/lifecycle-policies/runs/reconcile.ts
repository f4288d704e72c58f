/**
 * The scheduler. A look at what is due writes a run, a row for each of its volumes, and the next instant, in one
 * transaction: so each instant runs once, however many look, and whatever dies. Then it asks for the snapshots, set by
 * set, in the transaction that writes down which ones they are; what that leaves another look asks for. When one is
 * made, or failed, a third look settles it and lets older ones go; whoever settles the last volume of a run ends it.
 * Nothing waits for anything that could hang: what hangs is one row that is not settled.
 *
 * After downtime each schedule runs once, under the oldest instant that was missed; the others are passed over.
 */
import { randomUUID } from 'node:crypto';
import type { RequestContext } from '../../../authz/actor.ts';
import { ClientError } from '../../../errors/catalogue.ts';
import type { Clock } from '../../../platform/clock.ts';
import { isUnavailable, transaction } from '../../../platform/db.ts';
import type { Db, Tx } from '../../../platform/db.ts';
import type { Logger } from '../../../platform/log.ts';
import { policyTag } from '../../../tags/tags.ts';
import type { Tags } from '../../../tags/tags.ts';
import { contextOf, expire, expireAgain, letGo, makeRoom } from '../retention/reconcile.ts';
import type { SnapshotsOfRetention } from '../retention/reconcile.ts';
import { expiring, failed } from '../retention/store.ts';
import type { FailedExpiry } from '../retention/store.ts';
import { snapshotName, timesOf } from '../schedules.ts';
import { setNextRuns } from '../store.ts';
import * as store from './store.ts';
import type { DueSchedule, NewRunVolume, PendingVolume } from './store.ts';
import { failureOf } from './failure.ts';
import type { Failure } from './failure.ts';

/** What the service of snapshots does for runs. */
export interface SnapshotsOfRuns extends SnapshotsOfRetention {
  createForRuns(tx: Tx, runs: SnapshotOfRun[]): Promise<{ snapshotId: string }[]>;
}

interface SnapshotOfRun {
  context: RequestContext;
  volumeId: string;
  lifecyclePolicyId: number;
  scheduleId: string;
  scheduledAt: Date;
  name: string;
  tags: Tags;
}

export interface LifecyclePolicyRunDeps {
  db: Db;
  clock: Clock;
  snapshots: SnapshotsOfRuns;
  log: Logger;
  /** Tells the client that a schedule has begun to fail. In the transaction that knows it. */
  notify(tx: Tx, failure: Failure): Promise<unknown>;
}

/** Asks for the snapshots of a set of volumes, all or none. */
function requestSnapshots({ db, snapshots }: LifecyclePolicyRunDeps, ids: string[]): Promise<void> {
  return impatiently(db, async (tx) => {
    const claimed = await store.claimPending(tx, ids);
    if (claimed.length === 0) return;
    const made = await snapshots.createForRuns(tx, claimed.map(snapshotOf));
    await store.setRunning(
      tx,
      claimed.map(({ id }) => id),
      made.map(({ snapshotId }) => snapshotId),
    );
  });
}

function snapshotOf(volume: PendingVolume): SnapshotOfRun {
  const { volumeId, policyId, scheduleId, scheduledAt, name } = volume;
  const tags = { [policyTag]: { value: String(policyId), read_only: true } };
  return { context: contextOf(volume), volumeId, lifecyclePolicyId: policyId, scheduleId, scheduledAt, name, tags };
}

/**
 * The same. What fails for one that stands alone is its failure, if trying again would not help: no volume, or no quota
 * and nothing that could go first.
 */
async function requestOrRefuse(deps: LifecyclePolicyRunDeps, ids: string[]): Promise<void> {
  try {
    await requestSnapshots(deps, ids);
  } catch (error) {
    if (ids.length > 1 || !(error instanceof ClientError)) throw error;
    await endSettled(deps, [await impatiently(deps.db, (tx) => refuse(deps, tx, ids[0]!, error))]);
  }
}

/** Returns the run, if this settled one of its volumes. */
async function refuse(deps: LifecyclePolicyRunDeps, tx: Tx, id: string, error: ClientError): Promise<string | null> {
  const waits = error.code === 'QuotaExceeded' && (await makeRoom(deps, tx, id, error.message));
  return waits ? null : recordFailure(tx, id, error.message);
}

/** Returns the run, if this settled one of its volumes. */
async function recordFailure(tx: Tx, id: string, message: string): Promise<string | null> {
  const volume = await store.lock(tx, id);
  if (volume?.state !== 'pending') return null;
  await store.updateVolume(tx, id, { state: 'failed', message });
  return volume.runId;
}

/**
 * Ends the runs whose volumes are all settled, and tells the clients whose schedules thereby begin to fail. After the
 * commit that settled volumes of them: of those who settle at the same time, the last one finds all of them settled.
 */
async function endSettled(deps: LifecyclePolicyRunDeps, runIds: (string | null)[]): Promise<void> {
  const touched = [...new Set(runIds)].filter((id) => id !== null);
  await endRuns(deps, await store.settledAmong(deps.db, touched));
}

async function endRuns(deps: LifecyclePolicyRunDeps, runIds: string[]): Promise<void> {
  if (runIds.length === 0) return;
  await transaction(deps.db, async (tx) => {
    for (const id of runIds.toSorted()) await endRun(deps, tx, id);
  });
}

async function endRun({ clock, notify }: LifecyclePolicyRunDeps, tx: Tx, runId: string): Promise<void> {
  const ended = await store.endRun(tx, runId, clock.now());
  if (!ended) return;
  const changed = await store.setFailing(tx, ended.scheduleId, ended.failed);
  if (ended.failed && changed) await notify(tx, failureOf(await store.report(tx, runId)));
}

/** Rows that one statement writes. */
const batch = 250;
/** Rows that one transaction works on one by one, and holds until it has done with all. */
const few = 25;
const keptDays = 90;

export type DutyDeps = LifecyclePolicyRunDeps & { regionIds: number[] };

/** What is to be done from time to time, each in its own turn, so that nothing slow keeps runs from starting. */
export function createLifecyclePolicyDuties(
  deps: DutyDeps & { lookSeconds: number },
): { seconds: number; work(): Promise<unknown> }[] {
  const { db, clock, regionIds, lookSeconds } = deps;
  const settleAll = async (ids: string[]) => endSettled(deps, await eachOf(db, ids, (tx, id) => settle(deps, tx, id)));
  const expireAll = (ids: string[]) => eachOf(db, ids, (tx, id) => expire(deps, tx, id));
  const expireAllAgain = (all: FailedExpiry[]) => eachOf(db, all, (tx, one) => expireAgain(deps, tx, one));
  return [
    { seconds: lookSeconds, work: () => startAndRequest(deps) },
    // What is left to ask for where that failed, or somebody died over it.
    {
      seconds: 4 * lookSeconds,
      work: async () => inSets(await store.pending(db, regionIds), batch, (ids) => requestOrRefuse(deps, ids)),
    },
    { seconds: lookSeconds, work: async () => inSets(await store.settled(db, regionIds, batch), few, settleAll) },
    {
      seconds: lookSeconds,
      work: async () => inSets(await expiring(db, regionIds, clock.now(), batch), few, expireAll),
    },
    // What is left to end when somebody died between settling and ending.
    {
      seconds: 120 * lookSeconds,
      work: async () => inSets(await store.settledRuns(db, regionIds, batch), few, (ids) => endRuns(deps, ids)),
    },
    {
      seconds: 4 * lookSeconds,
      work: async () => inSets(await failed(db, regionIds, clock.now(), batch), few, expireAllAgain),
    },
    { seconds: 3600, work: () => store.forget(db, new Date(clock.now().getTime() - keptDays * 86_400_000)) },
  ];
}

/** Asks once for what it has started: what that fails for may take long, and must not keep the next runs from starting. */
export async function startAndRequest(deps: DutyDeps): Promise<void> {
  for (const ids of setsOf(await startDueRuns(deps), batch)) await requestSnapshots(deps, ids).catch(() => {});
}

/** Starts every run that is due. Returns what it wrote of their volumes. Most looks find nothing: they cost one statement. */
export async function startDueRuns(deps: DutyDeps): Promise<string[]> {
  const started: string[] = [];
  const next = await store.nextRun(deps.db, deps.regionIds);
  for (let more = next !== null && next <= deps.clock.now(); more; ) {
    const { schedules, volumes } = await transaction(deps.db, (tx) => startBatch(deps, tx));
    started.push(...volumes);
    more = schedules === batch;
  }
  return started;
}

async function startBatch(
  { clock, log, regionIds }: DutyDeps,
  tx: Tx,
): Promise<{ schedules: number; volumes: string[] }> {
  const now = clock.now();
  const due = await store.claimDue(tx, regionIds, now, batch);
  if (due.length === 0) return { schedules: 0, volumes: [] };
  const candidates = await store.volumesOfPolicies(tx, [...new Set(due.map(({ policyId }) => policyId))]);
  const byPolicy = Map.groupBy(candidates, ({ policyId }) => policyId);
  const runs = due.map(({ id: scheduleId, policyId, regionId, scheduledAt }) => {
    const doneAt = byPolicy.has(policyId) ? null : now;
    return { id: randomUUID(), scheduleId, policyId, regionId, scheduledAt, doneAt };
  });
  const fresh = await store.insertRuns(tx, runs, now);
  const volumes = due.flatMap((schedule, i) =>
    fresh.has(runs[i]!.id) ? volumesOfRun(schedule, runs[i]!.id, byPolicy.get(schedule.policyId) ?? []) : [],
  );
  await store.insertVolumes(tx, volumes);
  await setNextRuns(
    tx,
    due.map((schedule) => ({ id: schedule.id, nextRunAt: nextOf(schedule, now, log) })),
  );
  return { schedules: due.length, volumes: volumes.map(({ id }) => id) };
}

function volumesOfRun(schedule: DueSchedule, runId: string, volumes: { volumeId: string }[]): NewRunVolume[] {
  return volumes.map(({ volumeId }) => ({
    id: randomUUID(),
    runId,
    regionId: schedule.regionId,
    volumeId,
    name: snapshotName(schedule, volumeId, schedule.scheduledAt),
  }));
}

/** A schedule that was good once and is no longer (its zone is gone) must not stop the others. */
function nextOf(schedule: DueSchedule, now: Date, log: Logger): Date | null {
  try {
    return timesOf(schedule).next(now);
  } catch (error) {
    log.error({ err: error, scheduleId: schedule.id }, 'a schedule has no next run');
    return null;
  }
}

const setsOf = <T>(all: T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size));

/**
 * Works set by set. One that fails is halved until what it fails for stands alone: so that stops no others, and what a
 * quota leaves is used to the last. @throws what the first that stood alone failed for
 */
async function inSets<T>(all: T[], size: number, work: (set: T[]) => Promise<unknown>): Promise<void> {
  const left = setsOf(all, size);
  const failures: unknown[] = [];
  for (let set = left.shift(); set; set = left.shift()) {
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

/** A transaction that fails where somebody holds a row longer than a change takes: he hangs, and others are not to. */
function impatiently<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  return transaction(db, async (tx) => {
    await tx.$client.query(`set local lock_timeout = '1s'`);
    return work(tx);
  });
}

/** Works on each of a set, all in one transaction. */
function eachOf<T, R>(db: Db, set: T[], work: (tx: Tx, one: T) => Promise<R>): Promise<R[]> {
  return impatiently(db, async (tx) => {
    const results: R[] = [];
    for (const one of set) results.push(await work(tx, one));
    return results;
  });
}

/** Records what became of the snapshot of a volume. Returns the run, if this settled one of its volumes. */
async function settle(deps: LifecyclePolicyRunDeps, tx: Tx, id: string): Promise<string | null> {
  const volume = await store.lock(tx, id);
  if (volume?.state !== 'running' || volume.snapshotStatus === 'creating') return null;
  if (volume.snapshotStatus === 'available') {
    const { expires, retentionSeconds, snapshotCreatedAt } = volume;
    const ages = expires && retentionSeconds !== null;
    const expireAt = ages ? new Date(snapshotCreatedAt!.getTime() + retentionSeconds * 1000) : null;
    await store.updateVolume(tx, id, { state: 'made', expireAt });
    await letGo(deps, tx, volume);
  } else {
    // A failed one counts for nothing, and its owner should not have to clean up. What is busy is asked again soon.
    const failed = volume.snapshotStatus === 'error';
    if (failed && !(await deps.snapshots.expire(tx, contextOf(volume), volume.snapshotId!))) return null;
    const message = volume.snapshotError ?? 'The snapshot was deleted before it was complete.';
    await store.updateVolume(tx, id, { state: 'failed', message });
  }
  return volume.runId;
}
