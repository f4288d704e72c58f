/**
 * Retention: deletes the snapshots of a schedule and volume that exceed the number or age to retain.
 *
 * Invariant: the newest available snapshot is never deleted. The decision is made with the volume locked, so that no other
 * transaction deletes the newest one concurrently. A failed deletion is retried as long as the policy still requires it.
 */
import type { RequestContext } from '../../../authz/actor.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Tx } from '../../../platform/db.ts';
import { lastInstant } from '../fire-times.ts';
import * as runs from '../runs/store.ts';
import type { PendingRunVolume, RunVolume } from '../runs/store.ts';
import { defaultQuantity } from '../schedule/schema.ts';
import * as store from './store.ts';
import type { FailedExpiry } from './store.ts';

interface SnapshotOfSchedule {
  id: string;
  status: string;
  scheduledAt: Date | null;
}

/** The part of the service of snapshots that retention needs. */
export interface SnapshotsOfRetention {
  ofSchedule(on: Tx, scheduleId: string, volumeId: string): Promise<SnapshotOfSchedule[]>;
  expire(tx: Tx, requests: { context: RequestContext; id: string }[]): Promise<(string | null)[]>;
  hasRoomFor(tx: Tx, volumeId: string): Promise<boolean>;
}

interface RetentionDeps {
  clock: Clock;
  snapshots: SnapshotsOfRetention;
}

const retryMs = 60_000;

/** A run acts for the creator of the policy. */
export function contextOf({ clientId, userId, runId }: Pick<PendingRunVolume, 'clientId' | 'userId' | 'runId'>) {
  const actor = { tokenId: userId, clientId, role: 'member' as const, projectIds: null, operator: false };
  return { actor, requestId: runId };
}

/** Handles snapshots that may have expired, by the ids of their run volumes. */
export async function expireDue(deps: RetentionDeps, tx: Tx, ids: string[]): Promise<void> {
  const now = deps.clock.now();
  const due = (await runs.lockRunVolumes(tx, ids)).filter(({ expireAt }) => expireAt && expireAt <= now);
  await store.setExpireAt(
    tx,
    due.map(({ snapshotId }) => snapshotId!),
    null,
  );
  await expireOld(deps, tx, due);
}

/** Retries failed deletions. */
export async function retryExpiry({ snapshots }: RetentionDeps, tx: Tx, failed: FailedExpiry[]): Promise<void> {
  await snapshots.expire(
    tx,
    failed.map((one) => ({ context: contextOf(one), id: one.snapshotId })),
  );
}

/**
 * Deletes the available snapshots that are too many or too old, except the newest, for the schedule and volume of each of
 * these run volumes.
 */
export async function expireOld({ snapshots, clock }: RetentionDeps, tx: Tx, runVolumes: RunVolume[]): Promise<void> {
  const byPair = new Map(
    runVolumes.filter(({ expires }) => expires).map((each) => [`${each.scheduleId} ${each.volumeId}`, each] as const),
  );
  if (byPair.size === 0) return;
  const pairs = [...byPair.values()];
  await store.lockVolumes(
    tx,
    pairs.map(({ volumeId }) => volumeId),
  );
  const now = clock.now();
  const found = await store.findSurplus(tx, pairs, now);
  const taskIds = await snapshots.expire(
    tx,
    found.map(({ scheduleId, volumeId, id }) => ({ context: contextOf(byPair.get(`${scheduleId} ${volumeId}`)!), id })),
  );
  await store.recordExpired(
    tx,
    found.filter((_, i) => taskIds[i] !== null),
  );
  const locked = found.filter((_, i) => taskIds[i] === null).map(({ id }) => id);
  await store.setExpireAt(tx, locked, new Date(now.getTime() + retryMs));
}

/**
 * Makes room when the quota refuses the snapshot of the run volume `id`: deletes the oldest available snapshot if the next one
 * would replace it, but never the only one. Returns whether the request should be repeated: a snapshot of the client is about
 * to be deleted, or room has come since the refusal.
 */
export async function makeRoom(
  { snapshots, clock }: RetentionDeps,
  tx: Tx,
  id: string,
  refusal: string,
): Promise<boolean> {
  const [runVolume] = await runs.lockRunVolumes(tx, [id]);
  if (runVolume?.state !== 'pending' || !runVolume.expires) return false;
  const { scheduleId, volumeId, maxQuantity, expired } = runVolume;
  const quantity = maxQuantity ?? defaultQuantity;
  await store.lockVolumes(tx, [volumeId]);
  if (await store.isAnyDeleting(tx, scheduleId, volumeId)) {
    await runs.updateRunVolume(tx, id, { message: refusal });
    return true;
  }
  const available = (await snapshots.ofSchedule(tx, scheduleId, volumeId)).filter(
    ({ status }) => status === 'available',
  );
  const now = clock.now();
  const last = lastInstant(now);
  const oldest = available.findLast(({ scheduledAt }) => scheduledAt! > last) ?? available.at(-1);
  if (!oldest || quantity < 2 || available.length < quantity) {
    // In this order: what is about to be deleted at the first question may be deleted at the second.
    return (await store.isRoomComing(tx, id, now)) || snapshots.hasRoomFor(tx, volumeId);
  }
  // Wait until its creation is recorded, or until it is unlocked.
  if (await store.isUnsettled(tx, oldest.id)) return true;
  const [task] = await snapshots.expire(tx, [{ context: contextOf(runVolume), id: oldest.id }]);
  if (task) await runs.updateRunVolume(tx, id, { message: refusal, expired: [...expired, oldest.id] });
  return true;
}
