/** Fails every statement and driver call of the volume and snapshot reconcilers once; the desired state must still be reached. */
import { describe, expect, it } from 'vitest';
import { crashEverywhere, drift, reconcileOnce, truthOfVolumes } from '../../../test/crash-harness.ts';
import { terminal, type Trouble } from '../../../test/drivers.ts';
import { useCloudyard } from '../../../test/harness.ts';
import { createVolumeHost, type VolumeCall } from '../../../test/volume-host.ts';
import type { SnapshotDriver, VolumeDriver } from '../../drivers/volume.ts';
import type { Db } from '../../platform/db.ts';
import { createSnapshotReconciler } from '../snapshots/reconcile.ts';
import { createVolumeReconciler } from './reconcile.ts';

const cloud = useCloudyard({ driver: null });
const host = createVolumeHost();
const volumes = '/cloud/v1/volumes/1/1';
const snapshots = '/cloud/v1/snapshots/1/1';

const ofVolumes = (db: Db, driver: VolumeDriver) => createVolumeReconciler({ ...cloud.services, db, driver });
const ofSnapshots = (db: Db, driver: SnapshotDriver) => createSnapshotReconciler({ ...cloud.services, db, driver });

const reconcilerOf = (kind: 'volume' | 'snapshot') =>
  kind === 'volume' ? ofVolumes(cloud.db, host) : ofSnapshots(cloud.db, host.snapshots);
const reconcile = (kind: 'volume' | 'snapshot', id: string) =>
  reconcileOnce(cloud.db, cloud.services.tasks, reconcilerOf(kind), id);

const createdId = async (answer: { body: { tasks: string[] } }, kind: 'volumes' | 'snapshots') =>
  (await cloud.get(`/cloud/v1/tasks/${answer.body.tasks[0]}`)).body.created_resources[kind][0] as string;
const requestVolume = async (changes: object = {}) =>
  createdId(await cloud.post(volumes, { name: 'a volume', source: 'new-volume', size: 2, ...changes }), 'volumes');
const requestSnapshot = async (volume_id: string) =>
  createdId(await cloud.post(snapshots, { name: 'a snapshot', volume_id }), 'snapshots');

/** A volume and a snapshot of it whose bytes differ. */
async function withSnapshot(): Promise<{ volume: string; snapshot: string }> {
  const volume = await requestVolume();
  await reconcile('volume', volume);
  host.contents.volumes.get(volume)!.bytes = 'before';
  const snapshot = await requestSnapshot(volume);
  await reconcile('snapshot', snapshot);
  host.contents.volumes.get(volume)!.bytes = 'after';
  return { volume, snapshot };
}

/** The complete visible state of a volume or snapshot: its row, its tasks, the host, the counters. */
async function world(kind: 'volumes' | 'snapshots', id: string) {
  const { status, body } = await cloud.get(`${kind === 'volumes' ? volumes : snapshots}/${id}`);
  const { rows: tasks } = await cloud.db.$client.query<{ task: string }>(
    `select task_type || ' ' || state as task from tasks where resource_id = $1 order by created_on, generation`,
    [id],
  );
  const reconciler = kind === 'volumes' ? ofVolumes(cloud.db, host) : ofSnapshots(cloud.db, host.snapshots);
  return {
    row: status === 200 ? { status: body.status, size: body.size, task_id: body.task_id } : status,
    tasks: tasks.map(({ task }) => task),
    host: host.contents[kind].get(id),
    drift: await drift(cloud.db, truthOfVolumes),
    counted: await rowCountsMatch(),
    pending: (await reconciler.findPending(cloud.db, [1])).some((row) => row.id === id),
  };
}

async function rowCountsMatch(): Promise<boolean> {
  const { rows } = await cloud.db.$client.query<{ right: boolean }>(
    `select coalesce((select sum(count) from row_counts where resource in ('volume', 'snapshot')), 0)
            = (select count(*) from volumes) + (select count(*) from snapshots) as right`,
  );
  return rows[0]!.right;
}

const consistent = { drift: [], counted: true, pending: false };
const shown = (status: string, size = 2) => ({ status, size, task_id: null });

interface Scenario {
  kind: 'volumes' | 'snapshots';
  arrange(): Promise<string>;
  end: object;
  trouble?: (call: VolumeCall) => Trouble;
  /** Number of calls that return while bytes are still being copied. */
  copying?: number;
}

const refused = () => ({ error: terminal(), done: false });
const existingVolume = (change: (path: string) => Promise<unknown>) => async () => {
  const { volume } = await withSnapshot();
  await change(`${volumes}/${volume}`);
  return volume;
};
const existingSnapshot = (change: (path: string) => Promise<unknown>) => async () => {
  const { snapshot } = await withSnapshot();
  await change(`${snapshots}/${snapshot}`);
  return snapshot;
};

const scenarios: Record<string, Scenario> = {
  'creating a volume': {
    kind: 'volumes',
    arrange: requestVolume,
    end: { row: shown('available'), tasks: ['create_volume FINISHED'], host: { sizeGib: 2, bytes: '' } },
  },
  'creating a volume from a snapshot, with a slow copy': {
    kind: 'volumes',
    copying: 3,
    arrange: async () =>
      requestVolume({ source: 'snapshot', size: undefined, snapshot_id: (await withSnapshot()).snapshot }),
    end: { row: shown('available'), tasks: ['create_volume FINISHED'], host: { sizeGib: 2, bytes: 'before' } },
  },
  'extending a volume': {
    kind: 'volumes',
    arrange: existingVolume((path) => cloud.post(`${path}/extend`, { size: 5 })),
    end: {
      row: shown('available', 5),
      tasks: ['create_volume FINISHED', 'extend_volume FINISHED'],
      host: { sizeGib: 5, bytes: 'after' },
    },
  },
  'reverting a volume': {
    kind: 'volumes',
    copying: 1,
    arrange: existingVolume((path) => cloud.post(`${path}/revert`)),
    end: {
      row: shown('available'),
      tasks: ['create_volume FINISHED', 'revert_volume FINISHED'],
      host: { sizeGib: 2, bytes: 'before' },
    },
  },
  'deleting a volume with its snapshot': {
    kind: 'volumes',
    arrange: async () => {
      const { volume, snapshot } = await withSnapshot();
      await cloud.delete(`${volumes}/${volume}`);
      await reconcile('snapshot', snapshot);
      return volume;
    },
    end: { row: 404, tasks: ['create_volume FINISHED', 'delete_volume FINISHED'], host: undefined },
  },
  'creating a volume, with a permanent driver error': {
    kind: 'volumes',
    arrange: requestVolume,
    trouble: refused,
    end: { row: shown('error'), tasks: ['create_volume ERROR'], host: undefined },
  },
  'extending a volume, with a permanent driver error': {
    kind: 'volumes',
    arrange: existingVolume((path) => cloud.post(`${path}/extend`, { size: 5 })),
    trouble: refused,
    end: {
      row: shown('error_extending'),
      tasks: ['create_volume FINISHED', 'extend_volume ERROR'],
      host: { sizeGib: 2, bytes: 'after' },
    },
  },
  'reverting a volume, with a permanent driver error': {
    kind: 'volumes',
    arrange: existingVolume((path) => cloud.post(`${path}/revert`)),
    trouble: refused,
    end: {
      row: shown('error_restoring'),
      tasks: ['create_volume FINISHED', 'revert_volume ERROR'],
      host: { sizeGib: 2, bytes: 'after' },
    },
  },
  'deleting a volume, with a permanent driver error': {
    kind: 'volumes',
    arrange: async () => {
      const volume = await requestVolume();
      await reconcile('volume', volume);
      await cloud.delete(`${volumes}/${volume}`);
      return volume;
    },
    trouble: refused,
    end: {
      row: shown('error_deleting'),
      tasks: ['create_volume FINISHED', 'delete_volume ERROR'],
      host: { sizeGib: 2, bytes: '' },
    },
  },
  'deleting a volume whose snapshot cannot be deleted': {
    kind: 'volumes',
    arrange: async () => {
      const { volume, snapshot } = await withSnapshot();
      await cloud.delete(`${volumes}/${volume}`);
      host.trouble(refused);
      await reconcile('snapshot', snapshot);
      host.trouble();
      return volume;
    },
    end: {
      row: shown('error_deleting'),
      tasks: ['create_volume FINISHED', 'delete_volume ERROR'],
      host: { sizeGib: 2, bytes: 'after' },
    },
  },
  'creating a snapshot': {
    kind: 'snapshots',
    copying: 2,
    arrange: async () => requestSnapshot((await withSnapshot()).volume),
    end: { row: shown('available'), tasks: ['create_snapshot FINISHED'], host: { sizeGib: 2, bytes: 'after' } },
  },
  'deleting a snapshot': {
    kind: 'snapshots',
    arrange: existingSnapshot((path) => cloud.delete(path)),
    end: { row: 404, tasks: ['create_snapshot FINISHED', 'delete_snapshot FINISHED'], host: undefined },
  },
  'creating a snapshot, with a permanent driver error': {
    kind: 'snapshots',
    arrange: async () => requestSnapshot((await withSnapshot()).volume),
    trouble: refused,
    end: { row: shown('error'), tasks: ['create_snapshot ERROR'], host: undefined },
  },
  'deleting a snapshot, with a permanent driver error': {
    kind: 'snapshots',
    arrange: existingSnapshot((path) => cloud.delete(path)),
    trouble: refused,
    end: {
      row: shown('error_deleting'),
      tasks: ['create_snapshot FINISHED', 'delete_snapshot ERROR'],
      host: { sizeGib: 2, bytes: 'before' },
    },
  },
};

async function everywhere(_name: string, given: Scenario): Promise<void> {
  const { kind } = given;
  const shared = {
    db: cloud.db,
    tasks: cloud.services.tasks,
    async arrange() {
      host.trouble();
      host.stillCopying = 0;
      const id = await given.arrange();
      host.trouble(given.trouble);
      host.stillCopying = given.copying ?? 0;
      return id;
    },
    async check(id: string) {
      expect(await world(kind, id)).toEqual({ ...consistent, ...given.end });
    },
  };
  const figures =
    kind === 'volumes'
      ? await crashEverywhere<VolumeDriver>({ ...shared, driver: host, reconciler: ofVolumes })
      : await crashEverywhere<SnapshotDriver>({ ...shared, driver: host.snapshots, reconciler: ofSnapshots });
  expect(figures.injected).toBeGreaterThanOrEqual(10);
}

describe('if the volume or snapshot reconciler fails or dies at any step, any number of times', () => {
  it.each(Object.entries(scenarios))(
    '%s reaches the expected state, and another reconcile changes nothing',
    everywhere,
    120_000,
  );
});
