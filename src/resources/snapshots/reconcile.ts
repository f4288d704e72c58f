/** Makes a snapshot real: reads its row and its volume's, has the driver copy, and records what was observed. */
import type { SnapshotDriver } from '../../drivers/volume.ts';
import { transaction } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { Quota } from '../../quota/quota.ts';
import type { Outcome, Reconciler } from '../../tasks/reconcile.ts';
import type { Tasks } from '../../tasks/tasks.ts';
import * as store from './store.ts';
import type { SnapshotRow } from './store.ts';

export interface SnapshotReconcilerDeps {
  db: Db;
  tasks: Tasks;
  quota: Quota;
  driver: SnapshotDriver;
}

/** Between two looks at what takes long. */
const lookAgainSeconds = 1;

export function createSnapshotReconciler(deps: SnapshotReconcilerDeps): Reconciler {
  const { db, driver } = deps;
  return {
    resource: 'snapshot',

    async reconcile(id, signal, attempting): Promise<Outcome> {
      const snapshot = await store.load(db, id);
      if (!snapshot) return { kind: 'done' };
      attempting(snapshot.generation);
      if (snapshot.deletedAt) {
        await driver.remove(id, signal);
        await transaction(db, (tx) => recordRemoval(deps, tx, snapshot));
        return { kind: 'done' };
      }
      const obstacle = snapshot.status === 'creating' ? await obstacleIn(db, snapshot) : null;
      if (obstacle) return obstacle;
      const { volumeId, observedReal: settled } = snapshot;
      const observed = await driver.apply({ id, volumeId, settled }, signal);
      if (observed.copying) return { kind: 'again', afterSeconds: lookAgainSeconds };
      await transaction(db, (tx) => recordObserved(deps, tx, snapshot));
      return { kind: 'done' };
    },

    recordFailure,

    findPending: store.unconverged,

    async findDrift(_db, regionIds) {
      // What only pretends forgets at every restart: there is nothing to compare with.
      if (!driver.real) return [];
      // The host first: a snapshot has its row before it is on the host, so what has no row afterwards never will.
      const onHost = new Set(await driver.list());
      const known = await store.known(db, [...onHost]);
      for (const id of onHost) if (!known.has(id)) await driver.quarantine(id);
      // Whole and not there: lost. Lost and there again: whole.
      return (await store.settled(db, regionIds)).filter(({ id, whole }) => whole !== onHost.has(id));
    },
  };
}

/** What its volume is still to become, or never became. Only a policy's snapshot was let in beside a task of the volume. */
async function obstacleIn(db: Db, { volumeId }: SnapshotRow): Promise<Outcome | null> {
  const volume = await store.loadVolume(db, volumeId);
  if (volume && volume.observedGeneration < volume.generation) return { kind: 'again', afterSeconds: lookAgainSeconds };
  if (volume && volume.observedSize !== null) return null;
  return { kind: 'failed', message: 'The volume was never made, so there is nothing to make a snapshot of.' };
}

async function recordObserved(deps: SnapshotReconcilerDeps, tx: Tx, snapshot: SnapshotRow): Promise<void> {
  const current = await store.lock(tx, snapshot.id);
  if (!current) return;
  await store.update(tx, snapshot.id, {
    observedReal: current.observedReal || deps.driver.real,
    observedGeneration: snapshot.generation,
    // A change that came meanwhile has set its own status, and its own job ends it.
    ...(current.generation === snapshot.generation && { status: 'available' as const }),
  });
  await deps.tasks.finish(tx, snapshot.id, snapshot.generation);
}

async function recordRemoval(deps: SnapshotReconcilerDeps, tx: Tx, snapshot: SnapshotRow): Promise<void> {
  const current = await store.lock(tx, snapshot.id);
  if (!current) return;
  await store.remove(tx, current);
  await deps.tasks.finish(tx, snapshot.id, current.generation);
  await deps.quota.release(tx, current, { volume_snapshots_count: 1, volume_snapshots_size: current.size });
}

/** It keeps its quota until it is deleted. */
async function recordFailure(tx: Tx, id: string, generation: number): Promise<void> {
  const snapshot = await store.lock(tx, id);
  if (!snapshot || snapshot.generation > generation) return;
  const status = snapshot.deletedAt ? 'error_deleting' : 'error';
  await store.update(tx, id, { observedGeneration: snapshot.generation, status });
}
