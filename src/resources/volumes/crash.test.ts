/** Every statement and driver call of the reconcilers of volumes and snapshots fails once, and the world becomes as desired. */
import { describe, expect, it } from 'vitest';
import { crashEverywhere, drift } from '../../../test/crash-harness.ts';
import { terminal } from '../../../test/drivers.ts';
import type { Trouble } from '../../../test/drivers.ts';
import { useCloudyard } from '../../../test/harness.ts';
import { createVolumeHost } from '../../../test/volume-host.ts';
import type { VolumeCall } from '../../../test/volume-host.ts';
import type { SnapshotDriver, VolumeDriver } from '../../drivers/volume.ts';
import { silentLogger } from '../../platform/log.ts';
import type { Db } from '../../platform/db.ts';
import { runReconcile } from '../../tasks/reconcile.ts';
import { createSnapshotReconciler } from '../snapshots/reconcile.ts';
import { createVolumeReconciler } from './reconcile.ts';

const cloud = useCloudyard({ driver: null });
const host = createVolumeHost();
const volumes = '/cloud/v1/volumes/1/1';
const snapshots = '/cloud/v1/snapshots/1/1';
const truth = {
  volume_count: 'select client_id, region_id, count(*) as amount from volumes group by 1, 2',
  volume_size: 'select client_id, region_id, sum(size) as amount from volumes group by 1, 2',
  volume_snapshots_count: 'select client_id, region_id, count(*) as amount from snapshots group by 1, 2',
  volume_snapshots_size: 'select client_id, region_id, sum(size) as amount from snapshots group by 1, 2',
};

const ofVolumes = (db: Db, driver: VolumeDriver) => createVolumeReconciler({ ...cloud.services, db, driver });
const ofSnapshots = (db: Db, driver: SnapshotDriver) => createSnapshotReconciler({ ...cloud.services, db, driver });

/** Reconciles what was brought to its present state without a failure. */
const calm = async (resource: 'volume' | 'snapshot', id: string) => {
  const { db, services } = cloud;
  const deps = { db, tasks: services.tasks, log: silentLogger, onDriverError: () => {} };
  const reconciler = resource === 'volume' ? ofVolumes(db, host) : ofSnapshots(db, host.snapshots);
  await runReconcile(
    deps,
    reconciler,
    { resource, id, regionId: 1 },
    { attempts: 1, priority: 0, flags: null },
    new AbortController().signal,
  );
};

const createdBy = async (answer: { body: { tasks: string[] } }, kind: 'volumes' | 'snapshots') =>
  (await cloud.get(`/cloud/v1/tasks/${answer.body.tasks[0]}`)).body.created_resources[kind][0] as string;
const accepted = async (changes: object = {}) =>
  createdBy(await cloud.post(volumes, { name: 'a volume', source: 'new-volume', size: 2, ...changes }), 'volumes');
const acceptedSnapshot = async (volume_id: string) =>
  createdBy(await cloud.post(snapshots, { name: 'a snapshot', volume_id }), 'snapshots');

/** A volume with bytes, and a snapshot of it that holds other ones. */
async function withSnapshot(): Promise<{ volume: string; snapshot: string }> {
  const volume = await accepted();
  await calm('volume', volume);
  host.contents.volumes.get(volume)!.bytes = 'before';
  const snapshot = await acceptedSnapshot(volume);
  await calm('snapshot', snapshot);
  host.contents.volumes.get(volume)!.bytes = 'after';
  return { volume, snapshot };
}

/** Everything that is to be seen of a volume or snapshot: its row, its tasks, the host, the counters. */
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
    drift: await drift(cloud.db, truth),
    counted: await countedRight(),
    unconverged: (await reconciler.findPending(cloud.db, [1])).some((row) => row.id === id),
  };
}

async function countedRight(): Promise<boolean> {
  const { rows } = await cloud.db.$client.query<{ right: boolean }>(
    `select coalesce((select sum(count) from row_counts where resource in ('volume', 'snapshot')), 0)
            = (select count(*) from volumes) + (select count(*) from snapshots) as right`,
  );
  return rows[0]!.right;
}

const well = { drift: [], counted: true, unconverged: false };
const shown = (status: string, size = 2) => ({ status, size, task_id: null });

interface Scenario {
  kind: 'volumes' | 'snapshots';
  arrange(): Promise<string>;
  end: object;
  trouble?: (call: VolumeCall) => Trouble;
  /** Calls that end while bytes are still being copied. */
  copying?: number;
}

const refused = () => ({ error: terminal(), done: false });
const oldVolume = (change: (path: string) => Promise<unknown>) => async () => {
  const { volume } = await withSnapshot();
  await change(`${volumes}/${volume}`);
  return volume;
};
const oldSnapshot = (change: (path: string) => Promise<unknown>) => async () => {
  const { snapshot } = await withSnapshot();
  await change(`${snapshots}/${snapshot}`);
  return snapshot;
};

const scenarios: Record<string, Scenario> = {
  'a create of a volume': {
    kind: 'volumes',
    arrange: accepted,
    end: { row: shown('available'), tasks: ['create_volume FINISHED'], host: { sizeGib: 2, bytes: '' } },
  },
  'a create from a snapshot, whose bytes take long': {
    kind: 'volumes',
    copying: 3,
    arrange: async () =>
      accepted({ source: 'snapshot', size: undefined, snapshot_id: (await withSnapshot()).snapshot }),
    end: { row: shown('available'), tasks: ['create_volume FINISHED'], host: { sizeGib: 2, bytes: 'before' } },
  },
  'an extension': {
    kind: 'volumes',
    arrange: oldVolume((path) => cloud.post(`${path}/extend`, { size: 5 })),
    end: {
      row: shown('available', 5),
      tasks: ['create_volume FINISHED', 'extend_volume FINISHED'],
      host: { sizeGib: 5, bytes: 'after' },
    },
  },
  'a revert': {
    kind: 'volumes',
    copying: 1,
    arrange: oldVolume((path) => cloud.post(`${path}/revert`)),
    end: {
      row: shown('available'),
      tasks: ['create_volume FINISHED', 'revert_volume FINISHED'],
      host: { sizeGib: 2, bytes: 'before' },
    },
  },
  'a deletion with its snapshot': {
    kind: 'volumes',
    arrange: async () => {
      const { volume, snapshot } = await withSnapshot();
      await cloud.delete(`${volumes}/${volume}?snapshots=${snapshot}`);
      await calm('snapshot', snapshot);
      return volume;
    },
    end: { row: 404, tasks: ['create_volume FINISHED', 'delete_volume FINISHED'], host: undefined },
  },
  'a create that the host refuses for good': {
    kind: 'volumes',
    arrange: accepted,
    trouble: refused,
    end: { row: shown('error'), tasks: ['create_volume ERROR'], host: undefined },
  },
  'an extension that the host refuses for good': {
    kind: 'volumes',
    arrange: oldVolume((path) => cloud.post(`${path}/extend`, { size: 5 })),
    trouble: refused,
    end: {
      row: shown('error_extending'),
      tasks: ['create_volume FINISHED', 'extend_volume ERROR'],
      host: { sizeGib: 2, bytes: 'after' },
    },
  },
  'a revert that the host refuses for good': {
    kind: 'volumes',
    arrange: oldVolume((path) => cloud.post(`${path}/revert`)),
    trouble: refused,
    end: {
      row: shown('error_restoring'),
      tasks: ['create_volume FINISHED', 'revert_volume ERROR'],
      host: { sizeGib: 2, bytes: 'after' },
    },
  },
  'a deletion that the host refuses for good': {
    kind: 'volumes',
    arrange: async () => {
      const volume = await accepted();
      await calm('volume', volume);
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
  'a deletion whose snapshot cannot be deleted': {
    kind: 'volumes',
    arrange: async () => {
      const { volume, snapshot } = await withSnapshot();
      await cloud.delete(`${volumes}/${volume}?snapshots=${snapshot}`);
      host.trouble(refused);
      await calm('snapshot', snapshot);
      host.trouble();
      return volume;
    },
    end: {
      row: shown('error_deleting'),
      tasks: ['create_volume FINISHED', 'delete_volume ERROR'],
      host: { sizeGib: 2, bytes: 'after' },
    },
  },
  'a create of a snapshot': {
    kind: 'snapshots',
    copying: 2,
    arrange: async () => acceptedSnapshot((await withSnapshot()).volume),
    end: { row: shown('available'), tasks: ['create_snapshot FINISHED'], host: { sizeGib: 2, bytes: 'after' } },
  },
  'a deletion of a snapshot': {
    kind: 'snapshots',
    arrange: oldSnapshot((path) => cloud.delete(path)),
    end: { row: 404, tasks: ['create_snapshot FINISHED', 'delete_snapshot FINISHED'], host: undefined },
  },
  'a create of a snapshot that the host refuses for good': {
    kind: 'snapshots',
    arrange: async () => acceptedSnapshot((await withSnapshot()).volume),
    trouble: refused,
    end: { row: shown('error'), tasks: ['create_snapshot ERROR'], host: undefined },
  },
  'a deletion of a snapshot that the host refuses for good': {
    kind: 'snapshots',
    arrange: oldSnapshot((path) => cloud.delete(path)),
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
      expect(await world(kind, id)).toEqual({ ...well, ...given.end });
    },
  };
  const figures =
    kind === 'volumes'
      ? await crashEverywhere<VolumeDriver>({ ...shared, driver: host, reconciler: ofVolumes })
      : await crashEverywhere<SnapshotDriver>({ ...shared, driver: host.snapshots, reconciler: ofSnapshots });
  expect(figures.injected).toBeGreaterThanOrEqual(10);
}

describe('wherever a reconciler of volumes or snapshots fails or dies, and however often', () => {
  it.each(Object.entries(scenarios))(
    '%s ends as it should, and another reconcile changes nothing',
    everywhere,
    120_000,
  );
});
