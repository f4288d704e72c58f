/** Requests to hosts to create and delete snapshots: rows, quota, and tasks with their jobs. */
import { randomUUID } from 'node:crypto';
import type { RequestContext } from '../../authz/actor.ts';
import type { Tx } from '../../platform/db.ts';
import type { NewTask, ResourceKey } from '../../tasks/tasks.ts';
import type { ServiceDeps } from '../service-kit.ts';
import * as store from './store.ts';
import type { RequestedSnapshot, SnapshotRow, VolumeRow } from './store.ts';

/** A snapshot to request, of a volume that the transaction has locked. */
export interface SnapshotRequest {
  context: RequestContext;
  volume: VolumeRow;
  given: Pick<SnapshotRow, 'name' | 'description' | 'tags' | 'lifecyclePolicyId' | 'scheduleId' | 'scheduledAt'>;
}

interface DeletionRequest {
  context: RequestContext;
  snapshot: SnapshotRow;
  /** The schedule whose snapshot expires. */
  schedule?: NewTask['schedule'];
}

export type SnapshotRequests = ReturnType<typeof createSnapshotRequests>;

export function createSnapshotRequests({ clock, tasks, quota }: Pick<ServiceDeps, 'clock' | 'tasks' | 'quota'>) {
  /** In the order of the clients, so that concurrent calls cannot deadlock. */
  const reserve = async (tx: Tx, rows: Pick<SnapshotRow, 'clientId' | 'regionId' | 'size'>[]): Promise<void> => {
    const byScope = Map.groupBy(rows, ({ clientId, regionId }) => `${clientId} ${regionId}`);
    for (const [, of] of [...byScope].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      const size = of.reduce((sum, row) => sum + row.size, 0);
      await quota.reserve(tx, of[0]!, { volume_snapshots_count: of.length, volume_snapshots_size: size });
    }
  };

  return {
    /** Whether the quotas have room for a snapshot of the volume. Locks nothing. */
    async hasRoomFor(tx: Tx, volume: VolumeRow): Promise<boolean> {
      const amounts = { volume_snapshots_count: 1, volume_snapshots_size: volume.size };
      return (await quota.exceeded(tx, volume, amounts)).length === 0;
    },

    /** Inserts snapshots that the host is to create. Reserves quota last, because that locks the counters until the commit. */
    async insert(tx: Tx, requests: SnapshotRequest[]): Promise<RequestedSnapshot[]> {
      const now = clock.now();
      const rows = requests.map(({ volume, given }) => {
        const { clientId, projectId, regionId, size } = volume;
        const placed = { clientId, projectId, regionId, volumeId: volume.id, size };
        return { id: randomUUID(), ...placed, ...given, creatorTaskId: randomUUID(), createdAt: now };
      });
      await tasks.enqueueAll(
        tx,
        rows.map((row, i) => ({
          context: requests[i]!.context,
          task: {
            id: row.creatorTaskId,
            type: 'create_snapshot',
            key: keyOf(row),
            projectId: row.projectId,
            generation: 1,
            createdResources: { snapshots: [row.id] },
            schedule: scheduleOf(row),
          },
        })),
      );
      await store.insertAll(tx, rows);
      await reserve(tx, rows);
      return rows.map(({ id, creatorTaskId }) => ({ snapshotId: id, taskId: creatorTaskId }));
    },

    /** Requests the removal of locked snapshots. Returns the tasks. */
    async delete(tx: Tx, requests: DeletionRequest[]): Promise<string[]> {
      await store.markDeleting(
        tx,
        requests.map(({ snapshot }) => snapshot.id),
        clock.now(),
      );
      return tasks.enqueueAll(
        tx,
        requests.map(({ context, snapshot, schedule = null }) => ({
          context,
          task: {
            type: 'delete_snapshot',
            key: keyOf(snapshot),
            projectId: snapshot.projectId,
            generation: snapshot.generation + 1,
            schedule,
          },
        })),
      );
    },
  };
}

export function keyOf({ id, regionId }: Pick<SnapshotRow, 'id' | 'regionId'>): ResourceKey {
  return { resource: 'snapshot', id, regionId };
}

/** The schedule whose run created the snapshot; null when a client did. */
export function scheduleOf({ scheduleId, lifecyclePolicyId }: Pick<SnapshotRow, 'scheduleId' | 'lifecyclePolicyId'>) {
  return scheduleId !== null && lifecyclePolicyId !== null ? { id: scheduleId, policyId: lifecyclePolicyId } : null;
}
