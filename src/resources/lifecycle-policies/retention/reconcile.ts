/**
 * Retention: deletes the snapshots of a schedule and volume that exceed the number or age to retain.
 *
 * Invariant: the newest available snapshot is never deleted. The decision is made with the volume locked, so that no other transaction
 * deletes the newest one concurrently. A failed deletion is retried as long as the policy still requires it.
 */
import type { RequestContext } from '../../../authz/actor.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Tx } from '../../../platform/db.ts';
import * as runs from '../runs/store.ts';
import type { PendingVolume, RunVolume } from '../runs/store.ts';
import { defaultQuantity } from '../schedules.ts';
import * as store from './store.ts';
import type { FailedExpiry } from './store.ts';

/** The part of the service of snapshots that retention needs. */
export interface SnapshotsOfRetention {
  ofSchedule(on: Tx, scheduleId: string, volumeId: string): Promise<{ id: string; status: string; createdAt: Date }[]>;
  expire(tx: Tx, context: RequestContext, id: string): Promise<string | null>;
}

export interface RetentionDeps {
  clock: Clock;
  snapshots: SnapshotsOfRetention;
}

const retryMs = 60_000;

/** A run acts for the creator of the policy. */
export function contextOf({ clientId, userId, runId }: Pick<PendingVolume, 'clientId' | 'userId' | 'runId'>) {
  const actor = { tokenId: userId, clientId, role: 'member' as const, projectIds: null, operator: false };
  return { actor, requestId: runId };
}

/** Handles a snapshot that may have expired. */
export async function expire(deps: RetentionDeps, tx: Tx, id: string): Promise<void> {
  const volume = await runs.lock(tx, id);
  if (!volume?.expireAt || volume.expireAt > deps.clock.now()) return;
  await runs.updateVolume(tx, id, { expireAt: null });
  await expireOld(deps, tx, volume);
}

/** Retries a failed deletion. */
export async function retryExpiry({ snapshots }: RetentionDeps, tx: Tx, failed: FailedExpiry): Promise<void> {
  await snapshots.expire(tx, contextOf(failed), failed.snapshotId);
}

/** Deletes the available snapshots of a schedule and volume that are too many or too old, except the newest. */
export async function expireOld({ snapshots, clock }: RetentionDeps, tx: Tx, volume: RunVolume): Promise<void> {
  const { scheduleId, volumeId, maxQuantity, retentionSeconds } = volume;
  if (!volume.expires) return;
  await store.lockVolume(tx, volumeId);
  const now = clock.now().getTime();
  const all = await snapshots.ofSchedule(tx, scheduleId, volumeId);
  const [newest, ...older] = all.filter(({ status }) => status === 'available');
  if (!newest) return;
  const expired: string[] = [];
  const locked: string[] = [];
  for (const [i, snapshot] of older.entries()) {
    const tooMany = i + 1 >= (maxQuantity ?? defaultQuantity);
    const tooOld = retentionSeconds !== null && now - snapshot.createdAt.getTime() >= retentionSeconds * 1000;
    if (!tooMany && !tooOld) continue;
    // Its creation must be recorded first; that runs this again.
    if (await store.isUnsettled(tx, snapshot.id)) continue;
    const task = await snapshots.expire(tx, contextOf(volume), snapshot.id);
    (task ? expired : locked).push(snapshot.id);
  }
  await store.recordExpired(tx, newest.id, expired);
  await store.setExpireAt(tx, locked, new Date(now + retryMs));
}

/**
 * Makes room when the quota refuses the next snapshot of a volume: deletes the oldest available snapshot if the next one
 * would replace it, but never the only one. Returns whether a snapshot of the client is about to be deleted, so that the
 * request should be repeated.
 */
export async function makeRoom(
  { snapshots, clock }: RetentionDeps,
  tx: Tx,
  id: string,
  refusal: string,
): Promise<boolean> {
  const volume = await runs.lock(tx, id);
  if (volume?.state !== 'pending' || !volume.expires) return false;
  const { scheduleId, volumeId, maxQuantity, expired } = volume;
  const quantity = maxQuantity ?? defaultQuantity;
  await store.lockVolume(tx, volumeId);
  if (await store.isAnyDeleting(tx, scheduleId, volumeId)) {
    await runs.updateVolume(tx, id, { message: refusal });
    return true;
  }
  const available = (await snapshots.ofSchedule(tx, scheduleId, volumeId)).filter(
    ({ status }) => status === 'available',
  );
  const oldest = available.at(-1);
  if (!oldest || quantity < 2 || available.length < quantity) return store.isRoomComing(tx, id, clock.now());
  // Wait until its creation is recorded, or until it is unlocked.
  if (await store.isUnsettled(tx, oldest.id)) return true;
  const task = await snapshots.expire(tx, contextOf(volume), oldest.id);
  if (task) await runs.updateVolume(tx, id, { message: refusal, expired: [...expired, oldest.id] });
  return true;
}
