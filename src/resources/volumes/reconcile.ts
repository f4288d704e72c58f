/** Reconciles a volume: reads its row, has the driver apply it to the host, and records what was observed. */
import type { VolumeDriver } from '../../drivers/volume.ts';
import type { Tx } from '../../platform/db.ts';
import type { Outcome, Reconciler } from '../../tasks/reconcile.ts';
import { findDrift, type ReconcilerDeps, recordObserved, recordRemoval } from '../reconcile-kit.ts';
import { desiredVolume } from './desired.ts';
import * as store from './store.ts';
import type { ReconciledVolume, VolumeRow } from './store.ts';

interface VolumeReconcilerDeps extends ReconcilerDeps {
  driver: VolumeDriver;
}

/** Between two polls of a copy, or of snapshots that are being deleted. */
const pollSeconds = 1;

export function createVolumeReconciler(deps: VolumeReconcilerDeps): Reconciler {
  const { db, driver, tasks } = deps;
  return {
    resource: 'volume',

    async reconcile(id, signal, noteGeneration): Promise<Outcome> {
      const volume = await store.load(db, id);
      if (!volume) return { kind: 'done' };
      noteGeneration(volume.generation);
      if (volume.deletedAt) return remove(deps, volume, signal);
      const observed = await driver.apply(desiredVolume(volume), signal);
      if (observed.copying) {
        if (observed.progress) await tasks.recordProgress(db, id, observed.progress);
        return { kind: 'again', afterSeconds: pollSeconds };
      }
      await recordObserved(deps, volume, (tx) =>
        store.recordObserved(tx, id, volume.generation, observed.sizeGib, driver.real),
      );
      return { kind: 'done' };
    },

    recordFailure: (tx, id, generation) => recordFailure(deps, tx, id, generation),

    findPending: store.findPending,

    findDrift: (db, regionIds, log) => findDrift(db, store, driver, regionIds, log),
  };
}

/** Each snapshot is removed first, by its own reconcile. */
async function remove(deps: VolumeReconcilerDeps, volume: ReconciledVolume, signal: AbortSignal): Promise<Outcome> {
  const snapshots = volume.snapshots ?? [];
  if (snapshots.some((snapshot) => snapshot.isPending)) return { kind: 'again', afterSeconds: pollSeconds };
  const [failed] = snapshots;
  if (failed) return { kind: 'failed', message: `snapshot ${failed.id} of the volume could not be deleted` };
  await deps.driver.remove(volume.id, signal);
  await recordRemoval(deps, volume, store.remove, { volume_count: 1, volume_size: volume.size });
  return { kind: 'done' };
}

/**
 * A failed extension releases its reservation; a volume that failed otherwise keeps its quota until it is deleted. An
 * available volume that fails without a change has lost its data. After a failed extension or revert a further failure does
 * not say that: the host may still refuse the change.
 */
async function recordFailure(deps: VolumeReconcilerDeps, tx: Tx, id: string, generation: number): Promise<void> {
  const volume = await store.lockById(tx, id);
  if (!volume || volume.generation > generation) return;
  const changes: Partial<VolumeRow> = { observedGeneration: volume.generation, revertTo: null };
  if (volume.status === 'creating' || volume.status === 'available') changes.status = 'error';
  if (volume.status === 'reverting') changes.status = 'error_restoring';
  if (volume.status === 'deleting') changes.status = 'error_deleting';
  if (volume.status === 'extending') {
    changes.status = 'error_extending';
    changes.size = volume.observedSize!;
    await deps.quota.release(tx, volume, { volume_size: volume.size - volume.observedSize! });
  }
  await store.update(tx, id, changes);
}
