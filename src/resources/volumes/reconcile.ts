/** Makes a volume real: reads its row, has the driver apply what it says, and records what was observed. */
import type { VolumeDriver } from '../../drivers/volume.ts';
import { transaction } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { Quota } from '../../quota/quota.ts';
import type { Outcome, Reconciler } from '../../tasks/reconcile.ts';
import type { Tasks } from '../../tasks/tasks.ts';
import { desiredVolume } from './desired.ts';
import * as store from './store.ts';
import type { VolumeRow } from './store.ts';

export interface VolumeReconcilerDeps {
  db: Db;
  tasks: Tasks;
  quota: Quota;
  driver: VolumeDriver;
}

/** Between two looks at what takes long. */
const lookAgainSeconds = 1;

export function createVolumeReconciler(deps: VolumeReconcilerDeps): Reconciler {
  const { db, driver } = deps;
  return {
    resource: 'volume',

    async reconcile(id, signal, attempting): Promise<Outcome> {
      const volume = await store.load(db, id);
      if (!volume) return { kind: 'done' };
      attempting(volume.generation);
      if (volume.deletedAt) return remove(deps, volume, signal);
      const observed = await driver.apply(desiredVolume(volume), signal);
      if (observed.copying) return { kind: 'again', afterSeconds: lookAgainSeconds };
      await transaction(db, (tx) => recordObserved(deps, tx, volume, observed.sizeGib));
      return { kind: 'done' };
    },

    recordFailure: (tx, id, generation) => recordFailure(deps, tx, id, generation),

    findPending: store.unconverged,

    async findDrift(_db, regionIds) {
      // What only pretends forgets at every restart: there is nothing to compare with.
      if (!driver.real) return [];
      // The host first: a volume has its row before it is on the host, so what has no row afterwards never will.
      const onHost = new Set(await driver.list());
      const known = await store.known(db, [...onHost]);
      for (const id of onHost) if (!known.has(id)) await driver.quarantine(id);
      // Whole and not there: lost. Lost and there again: whole.
      return (await store.settled(db, regionIds)).filter(({ id, whole }) => whole !== onHost.has(id));
    },
  };
}

/** Its snapshots go first, each by its own reconcile. */
async function remove(deps: VolumeReconcilerDeps, volume: VolumeRow, signal: AbortSignal): Promise<Outcome> {
  const left = await store.snapshotsLeft(deps.db, volume.id);
  if (left.some((snapshot) => snapshot.waiting)) return { kind: 'again', afterSeconds: lookAgainSeconds };
  const [stuck] = left;
  if (stuck) return { kind: 'failed', message: `Snapshot ${stuck.id} of the volume could not be deleted.` };
  await deps.driver.remove(volume.id, signal);
  await transaction(deps.db, (tx) => recordRemoval(deps, tx, volume));
  return { kind: 'done' };
}

async function recordObserved(deps: VolumeReconcilerDeps, tx: Tx, volume: VolumeRow, sizeGib: number): Promise<void> {
  const current = await store.lock(tx, volume.id);
  if (!current) return;
  await store.update(tx, volume.id, {
    observedSize: sizeGib,
    observedReal: current.observedReal || deps.driver.real,
    observedGeneration: volume.generation,
    // A change that came meanwhile has set its own status, and its own job ends it.
    ...(current.generation === volume.generation && { status: 'available' as const, revertTo: null }),
  });
  await deps.tasks.finish(tx, volume.id, volume.generation);
}

async function recordRemoval(deps: VolumeReconcilerDeps, tx: Tx, volume: VolumeRow): Promise<void> {
  const current = await store.lock(tx, volume.id);
  if (!current) return;
  await store.remove(tx, current);
  await deps.tasks.finish(tx, volume.id, current.generation);
  await deps.quota.release(tx, current, { volume_count: 1, volume_size: current.size });
}

/**
 * A failed extension gives back what it had reserved; a volume that failed otherwise keeps its quota until deleted. One
 * that worked and fails without having been changed has lost its data.
 */
async function recordFailure(deps: VolumeReconcilerDeps, tx: Tx, id: string, generation: number): Promise<void> {
  const volume = await store.lock(tx, id);
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
