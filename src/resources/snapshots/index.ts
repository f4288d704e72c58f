import { projectReader } from '../../authz/access.ts';
import type { VolumeDriver } from '../../drivers/volume.ts';
import { driverBacked, type Resource } from '../resource.ts';
import type { ReconcilerDeps } from '../reconcile-kit.ts';
import { createSnapshotReconciler } from './reconcile.ts';
import { snapshotOperations } from './routes.ts';
import { usageOfRows } from './store.ts';

export const snapshots = {
  operations: snapshotOperations,
  usageOfRows,
  ...driverBacked({
    driver: (drivers: { volume: VolumeDriver }) => drivers.volume.snapshots,
    faults: 'snapshot',
    reconciler: (services: ReconcilerDeps, driver) => createSnapshotReconciler({ ...services, driver }),
  }),
  events: [{ table: 'snapshots', kind: 'snapshot', access: projectReader }],
} satisfies Resource;
