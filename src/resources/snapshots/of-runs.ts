/** Snapshots that the schedules of policies make and expire. The caller's transaction records the runs. */
import type { RequestContext } from '../../authz/actor.ts';
import { ClientError, notFound } from '../../errors/catalogue.ts';
import type { Tx } from '../../platform/db.ts';
import type { Tags } from '../../tags/tags.ts';
import type { Tasks } from '../../tasks/tasks.ts';
import { scheduleOf, type SnapshotRequest, type SnapshotRequests } from './requests.ts';
import * as store from './store.ts';
import type { RequestedSnapshot, RunKey, VolumeRow } from './store.ts';

/** A run of a policy's schedule, for one volume. Schedule, volume and instant identify the snapshot that it makes. */
export interface SnapshotRun extends RunKey {
  /** The actor of the run. */
  context: RequestContext;
  lifecyclePolicyId: number;
  /** May be longer than the API allows, as the schedule's template expands. */
  name: string;
  tags: Tags;
}

export function createSnapshotsOfRuns(tasks: Tasks, requests: SnapshotRequests) {
  return {
    /**
     * Creates the snapshots of policies' runs, all or none, in the transaction that records the runs: under quotas like
     * any other, and at most once a run. They wait for active tasks of their volumes. Returns the snapshot of each run,
     * new or existing.
     * @throws ClientError when a volume does not exist or has no data, or a quota would be exceeded: then the transaction
     * must roll back
     */
    async createForRuns(tx: Tx, runs: SnapshotRun[]): Promise<RequestedSnapshot[]> {
      const volumes = await store.lockVolumes(
        tx,
        runs.map(({ volumeId }) => volumeId),
      );
      const byId = new Map(volumes.map((volume) => [volume.id, volume]));
      const existing = await store.ofRuns(tx, runs);
      const missing: SnapshotRequest[] = [];
      for (const [i, { context, volumeId, name, tags, lifecyclePolicyId, scheduleId, scheduledAt }] of runs.entries()) {
        const volume = byId.get(volumeId);
        if (!volume) throw notFound('volume', volumeId);
        if (existing[i]) continue;
        const willHaveData = !volume.deletedAt && (await tasks.lockedBy(tx, volumeId)) !== null;
        if (!hasData(volume) && !willHaveData) throw withoutData(volume);
        const given = { name, tags, description: null, lifecyclePolicyId, scheduleId, scheduledAt };
        missing.push({ context, volume, given });
      }
      const created = (await requests.insert(tx, missing)).values();
      return existing.map((snapshot) => snapshot ?? created.next().value!);
    },

    /** Whether the quotas have room for a snapshot of the volume; locks the volume. */
    async hasRoomFor(tx: Tx, volumeId: string): Promise<boolean> {
      const [volume] = await store.lockVolumes(tx, [volumeId]);
      return volume !== undefined && requests.hasRoomFor(tx, volume);
    },

    /** The snapshots that a schedule made of a volume and that are not being deleted, newest first. */
    ofSchedule: store.ofSchedule,

    /**
     * Deletes different snapshots that policies no longer retain, even if an earlier deletion failed. Returns the task of each;
     * null for a snapshot that is locked or already being deleted.
     */
    async expire(tx: Tx, expired: { context: RequestContext; id: string }[]): Promise<(string | null)[]> {
      if (expired.length === 0) return [];
      const ids = expired.map(({ id }) => id);
      const locked = await store.lockAllWithVolumes(tx, ids);
      const byId = new Map(locked.map((snapshot) => [snapshot.id, snapshot]));
      const deletions = expired.flatMap(({ context, id }) => {
        const snapshot = byId.get(id);
        if (!snapshot || snapshot.status === 'deleting') return [];
        if (snapshot.lockedBy ?? snapshot.copyingTaskId) return [];
        return [{ context, snapshot, schedule: scheduleOf(snapshot) }];
      });
      const taskIds = await requests.delete(tx, deletions);
      const taskOf = new Map(deletions.map(({ snapshot }, i) => [snapshot.id, taskIds[i]!]));
      return ids.map((id) => taskOf.get(id) ?? null);
    },
  };
}

/** False for a volume whose creation failed, that lost its data, or that is being deleted. */
export function hasData(volume: VolumeRow): boolean {
  return volume.observedSize !== null && !volume.deletedAt && volume.status !== 'error';
}

export function withoutData({ id, status }: VolumeRow): ClientError {
  return new ClientError('Conflict', `volume ${id} is in status ${status}; it has no data to make a snapshot of`);
}
