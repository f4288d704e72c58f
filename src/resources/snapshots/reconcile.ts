/** Reconciles a snapshot: reads its row and its volume's, has the driver copy, and records what was observed. */
import type { SnapshotDriver } from '../../drivers/volume.ts';
import type { Tx } from '../../platform/db.ts';
import type { Outcome, Reconciler } from '../../tasks/reconcile.ts';
import { findDrift, type ReconcilerDeps, recordObserved, recordRemoval } from '../reconcile-kit.ts';
import * as store from './store.ts';
import type { SnapshotWithVolume } from './store.ts';

interface SnapshotReconcilerDeps extends ReconcilerDeps {
  driver: SnapshotDriver;
}

/** Between two polls of a copy, or of a volume that is being created. */
const pollSeconds = 1;

export function createSnapshotReconciler(deps: SnapshotReconcilerDeps): Reconciler {
  const { db, driver, tasks } = deps;
  return {
    resource: 'snapshot',

    async reconcile(id, signal, noteGeneration): Promise<Outcome> {
      const snapshot = await store.load(db, id);
      if (!snapshot) return { kind: 'done' };
      noteGeneration(snapshot.generation);
      if (snapshot.deletedAt) {
        await driver.remove(id, signal);
        await recordRemoval(deps, snapshot, store.remove, {
          volume_snapshots_count: 1,
          volume_snapshots_size: snapshot.size,
        });
        return { kind: 'done' };
      }
      const obstacle = snapshot.status === 'creating' ? obstacleTo(snapshot) : null;
      if (obstacle) return obstacle;
      const { clientId, volumeId, observedReal: settled } = snapshot;
      const observed = await driver.apply({ id, clientId, volumeId, settled }, signal);
      if (observed.copying) {
        if (observed.progress) await tasks.recordProgress(db, id, observed.progress);
        return { kind: 'again', afterSeconds: pollSeconds };
      }
      await recordObserved(deps, snapshot, (tx) => store.recordObserved(tx, id, snapshot.generation, driver.real));
      return { kind: 'done' };
    },

    recordFailure,

    findPending: store.findPending,

    findDrift: (db, regionIds, log) => findDrift(db, store, driver, regionIds, log),
  };
}

/**
 * Why the volume cannot be copied yet, or never can. Only a policy can request a snapshot while its volume has an active
 * task.
 */
function obstacleTo({ volumeIsPending, volumeHasData }: SnapshotWithVolume): Outcome | null {
  if (volumeIsPending) return { kind: 'again', afterSeconds: pollSeconds };
  if (volumeHasData) return null;
  return { kind: 'failed', message: 'the volume was never created, so it has no data to copy' };
}

/** A failed snapshot keeps its quota until it is deleted. */
async function recordFailure(tx: Tx, id: string, generation: number): Promise<void> {
  const snapshot = await store.lockById(tx, id);
  if (!snapshot || snapshot.generation > generation) return;
  const status = snapshot.deletedAt ? 'error_deleting' : 'error';
  await store.update(tx, id, { observedGeneration: snapshot.generation, status });
}
