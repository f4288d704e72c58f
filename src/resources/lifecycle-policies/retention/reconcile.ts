/**
 * Retention: lets go the snapshots of a schedule and volume that are too many or too old, but never the newest good one.
 * That is decided with the volume held, so that nobody deletes the newest meanwhile. A removal that fails is asked for
 * again, as long as the policy still would.
 */
import type { RequestContext } from '../../../authz/actor.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Tx } from '../../../platform/db.ts';
import * as runs from '../runs/store.ts';
import type { PendingVolume, RunVolume } from '../runs/store.ts';
import { defaultQuantity } from '../schedules.ts';
import * as store from './store.ts';
import type { FailedExpiry } from './store.ts';

/** What the service of snapshots does for retention. */
export interface SnapshotsOfRetention {
  ofSchedule(on: Tx, scheduleId: string, volumeId: string): Promise<{ id: string; status: string; createdAt: Date }[]>;
  expire(tx: Tx, context: RequestContext, id: string): Promise<string | null>;
}

export interface RetentionDeps {
  clock: Clock;
  snapshots: SnapshotsOfRetention;
}

const lookAgainMs = 60_000;

/** Runs act for whoever made the policy. */
export function contextOf({ clientId, userId, runId }: Pick<PendingVolume, 'clientId' | 'userId' | 'runId'>) {
  const actor = { tokenId: userId, clientId, role: 'member' as const, projectIds: null, operator: false };
  return { actor, requestId: runId };
}

/** Looks at a snapshot whose time may be up. */
export async function expire(deps: RetentionDeps, tx: Tx, id: string): Promise<void> {
  const volume = await runs.lock(tx, id);
  if (!volume?.expireAt || volume.expireAt > deps.clock.now()) return;
  await runs.updateVolume(tx, id, { expireAt: null });
  await letGo(deps, tx, volume);
}

/** Asks once more for a removal that failed. */
export async function expireAgain({ snapshots }: RetentionDeps, tx: Tx, failed: FailedExpiry): Promise<void> {
  await snapshots.expire(tx, contextOf(failed), failed.snapshotId);
}

/** Deletes the good snapshots of a schedule and volume that are too many or too old, but never the newest. */
export async function letGo({ snapshots, clock }: RetentionDeps, tx: Tx, volume: RunVolume): Promise<void> {
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
    // Made, which is to be recorded first; then all this is looked at again.
    if (await store.isUnsettled(tx, snapshot.id)) continue;
    const task = await snapshots.expire(tx, contextOf(volume), snapshot.id);
    (task ? expired : busy).push(snapshot.id);
  }
  await store.noteExpired(tx, newest.id, expired);
  await store.lookAgain(tx, busy, new Date(now + lookAgainMs));
}

/**
 * Where a quota refuses the next snapshot of a volume: lets the oldest good one go first, if it would go anyway when that
 * is made, and never the only good one. Says whether something goes, of this volume or of another one of the client's
 * that took the room: then the snapshot is to be asked for again.
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
  await store.holdVolume(tx, volumeId);
  if (await store.isOneGoing(tx, scheduleId, volumeId)) {
    await runs.updateVolume(tx, id, { message: refusal });
    return true;
  }
  const good = (await snapshots.ofSchedule(tx, scheduleId, volumeId)).filter(({ status }) => status === 'available');
  const oldest = good.at(-1);
  if (!oldest || quantity < 2 || good.length < quantity) return store.isRoomComing(tx, id, clock.now());
  // One that is not recorded as made, or is held just now, is waited for.
  if (await store.isUnsettled(tx, oldest.id)) return true;
  const task = await snapshots.expire(tx, contextOf(volume), oldest.id);
  if (task) await runs.updateVolume(tx, id, { message: refusal, expired: [...expired, oldest.id] });
  return true;
}
