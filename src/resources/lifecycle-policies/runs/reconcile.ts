/**
 * The scheduler. A look at what is due writes a run, a row and a job for each of its volumes, and the next instant, in
 * one transaction: so each instant runs once, however many look, and whatever dies. The job of a volume asks for its
 * snapshot in the transaction that writes down which one it is. When that is made, or failed, another look settles it
 * and lets older ones go; whoever settles the last volume of a run ends it. Nothing waits for anything that could hang: what hangs is one row that is not settled.
 *
 * After downtime each schedule runs once, under the oldest instant that was missed; the others are passed over.
 */
import { randomUUID } from 'node:crypto';
import type { RequestContext } from '../../../authz/actor.ts';
import { ClientError } from '../../../errors/catalogue.ts';
import type { Clock } from '../../../platform/clock.ts';
import { transaction } from '../../../platform/db.ts';
import type { Db, Tx } from '../../../platform/db.ts';
import type { Logger } from '../../../platform/log.ts';
import type { Tags } from '../../../tags/tags.ts';
import type { Outcome, Reconciler } from '../../../tasks/reconcile.ts';
import type { Tasks } from '../../../tasks/tasks.ts';
import { defaultQuantity, snapshotName, timesOf } from '../schedules.ts';
import { setNextRuns } from '../store.ts';
import * as store from './store.ts';
import type { DueSchedule, NewRunVolume, RunVolume } from './store.ts';
import { failureOf } from './failure.ts';
import type { Failure } from './failure.ts';

/** What the service of snapshots does for runs. */
export interface SnapshotsOfRuns {
  createForRun(
    tx: Tx,
    context: RequestContext,
    run: {
      volumeId: string;
      lifecyclePolicyId: number;
      scheduleId: string;
      scheduledAt: Date;
      name: string;
      tags: Tags;
    },
  ): Promise<{ snapshotId: string }>;
  ofSchedule(on: Tx, scheduleId: string, volumeId: string): Promise<{ id: string; status: string; createdAt: Date }[]>;
  expire(tx: Tx, context: RequestContext, id: string): Promise<string | null>;
}

export interface LifecyclePolicyRunDeps {
  db: Db;
  clock: Clock;
  tasks: Tasks;
  snapshots: SnapshotsOfRuns;
  log: Logger;
  /** Tells the client that a schedule has begun to fail. In the transaction that knows it. */
  notify(tx: Tx, failure: Failure): Promise<unknown>;
}

const resource = 'lifecycle_policy_run';

/** The job of one volume of a run. */
export function createLifecyclePolicyRunReconciler(deps: LifecyclePolicyRunDeps): Reconciler {
  const { db } = deps;
  return {
    resource,

    async reconcile(id, _signal, attempting): Promise<Outcome> {
      attempting(1);
      try {
        await transaction(db, (tx) => requestSnapshot(deps, tx, id));
      } catch (error) {
        // No quota, no volume: trying again would not help. The next run may.
        if (!(error instanceof ClientError)) throw error;
        const runId = await transaction(db, (tx) => recordFailure(tx, id, error.message));
        await endIfSettled(deps, runId);
      }
      return { kind: 'done' };
    },

    recordFailure: async (tx, id, _generation, message) => void (await recordFailure(tx, id, message)),

    unconverged: store.pending,

    findDrift: async () => [],
  };
}

async function requestSnapshot({ snapshots }: LifecyclePolicyRunDeps, tx: Tx, id: string): Promise<void> {
  const volume = await store.lock(tx, id);
  if (volume?.state !== 'pending') return;
  const { volumeId, policyId, scheduleId, scheduledAt, name } = volume;
  const tags = { created_by_policy: { value: String(policyId), read_only: true } };
  const run = { volumeId, lifecyclePolicyId: policyId, scheduleId, scheduledAt, name, tags };
  const { snapshotId } = await snapshots.createForRun(tx, contextOf(volume), run);
  await store.updateVolume(tx, id, { state: 'running', snapshotId });
}

/** Runs act for whoever made the policy. */
function contextOf({ clientId, userId, runId }: RunVolume): RequestContext {
  const actor = { tokenId: userId, clientId, role: 'member' as const, projectIds: null, operator: false };
  return { actor, requestId: runId };
}

/** Returns the run, if this settled one of its volumes. */
async function recordFailure(tx: Tx, id: string, message: string): Promise<string | null> {
  const volume = await store.lock(tx, id);
  if (volume?.state !== 'pending') return null;
  await store.updateVolume(tx, id, { state: 'failed', message });
  return volume.runId;
}

/**
 * Ends a run if its volumes are all settled, and tells the client if this is where its schedule begins to fail. After
 * the commit that settled a volume: of those who settle at the same time, the last one finds all of them settled.
 */
async function endIfSettled(deps: LifecyclePolicyRunDeps, runId: string | null): Promise<void> {
  if (runId && (await store.isSettled(deps.db, runId))) await transaction(deps.db, (tx) => endRun(deps, tx, runId));
}

async function endRun({ clock, notify }: LifecyclePolicyRunDeps, tx: Tx, runId: string): Promise<void> {
  const ended = await store.endRun(tx, runId, clock.now());
  if (!ended) return;
  const changed = await store.setFailing(tx, ended.scheduleId, ended.failed);
  if (ended.failed && changed) await notify(tx, failureOf(await store.report(tx, runId)));
}

const batch = 250;
/** Rows that are settled beside each other. */
const atOnce = 3;
const lookAgainMs = 60_000;
const keptDays = 90;

export type DutyDeps = LifecyclePolicyRunDeps & { regionIds: number[] };

/** What is to be done from time to time, each in its own turn, so that nothing slow keeps runs from starting. */
export function createLifecyclePolicyDuties(
  deps: DutyDeps & { lookSeconds: number },
): { seconds: number; work(): Promise<unknown> }[] {
  const { db, clock, regionIds, lookSeconds } = deps;
  const settleOne = async (id: string) => endIfSettled(deps, await transaction(db, (tx) => settle(deps, tx, id)));
  const expireOne = (id: string) => transaction(db, (tx) => expire(deps, tx, id));
  const endOne = (id: string) => transaction(db, (tx) => endRun(deps, tx, id));
  return [
    { seconds: lookSeconds, work: () => startDueRuns(deps) },
    {
      seconds: lookSeconds,
      work: async () => forEachOf(await store.settled(db, regionIds, batch), settleOne),
    },
    {
      seconds: lookSeconds,
      work: async () => forEachOf(await store.expiring(db, regionIds, clock.now(), batch), expireOne),
    },
    // What is left to end when somebody died between settling and ending.
    { seconds: 120 * lookSeconds, work: async () => forEachOf(await store.settledRuns(db, regionIds, batch), endOne) },
    { seconds: 3600, work: () => store.forget(db, new Date(clock.now().getTime() - keptDays * 86_400_000)) },
  ];
}

/** Starts every run that is due. Returns how many. Most looks find nothing: they cost one statement. */
export async function startDueRuns(deps: DutyDeps): Promise<number> {
  const next = await store.nextRun(deps.db, deps.regionIds);
  return next && next <= deps.clock.now() ? inBatches(deps.db, (tx) => startBatch(deps, tx)) : 0;
}

async function inBatches(db: Db, work: (tx: Tx) => Promise<number>): Promise<number> {
  for (let all = 0; ; ) {
    const done = await transaction(db, work);
    all += done;
    if (done < batch) return all;
  }
}

async function startBatch({ clock, tasks, log, regionIds }: DutyDeps, tx: Tx): Promise<number> {
  const now = clock.now();
  const due = await store.claimDue(tx, regionIds, now, batch);
  if (due.length === 0) return 0;
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
  await tasks.requestReconciles(tx, resource, volumes);
  return due.length;
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

/** Works on what is given, some at once. One that fails does not stop the others. @throws what the first one threw */
async function forEachOf(ids: string[], work: (id: string) => Promise<void>): Promise<void> {
  const left = [...ids];
  const failures: unknown[] = [];
  const line = async () => {
    for (let id = left.shift(); id !== undefined; id = left.shift()) {
      await work(id).catch((error: unknown) => failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, line));
  if (failures.length > 0) throw failures[0];
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

async function expire(deps: LifecyclePolicyRunDeps, tx: Tx, id: string): Promise<void> {
  const volume = await store.lock(tx, id);
  if (!volume?.expireAt || volume.expireAt > deps.clock.now()) return;
  await store.updateVolume(tx, id, { expireAt: null });
  await letGo(deps, tx, volume);
}

/**
 * Deletes the good snapshots of a schedule and volume that are too many or too old, but never the newest. The volume is
 * held, so that nobody deletes the newest meanwhile.
 */
async function letGo({ snapshots, clock }: LifecyclePolicyRunDeps, tx: Tx, volume: RunVolume): Promise<void> {
  const { scheduleId, volumeId, maxQuantity, retentionSeconds } = volume;
  if (!volume.expires) return;
  await store.holdVolume(tx, volumeId);
  const now = clock.now().getTime();
  const all = await snapshots.ofSchedule(tx, scheduleId, volumeId);
  const [newest, ...older] = all.filter(({ status }) => status === 'available');
  if (!newest) return;
  const expired: string[] = [];
  const busy: string[] = [];
  for (const [i, snapshot] of older.entries()) {
    const tooMany = i + 1 >= (maxQuantity ?? defaultQuantity);
    const tooOld = retentionSeconds !== null && now - snapshot.createdAt.getTime() >= retentionSeconds * 1000;
    if (!tooMany && !tooOld) continue;
    const task = await snapshots.expire(tx, contextOf(volume), snapshot.id);
    (task ? expired : busy).push(snapshot.id);
  }
  await store.noteExpired(tx, newest.id, expired);
  await store.lookAgain(tx, busy, new Date(now + lookAgainMs));
}
