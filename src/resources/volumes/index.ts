import { projectReader } from '../../authz/access.ts';
import type { VolumeDriver } from '../../drivers/volume.ts';
import { driverBacked, type Resource } from '../resource.ts';
import type { ReconcilerDeps } from '../reconcile-kit.ts';
import { createVolumeReconciler } from './reconcile.ts';
import { volumeOperations } from './routes.ts';
import { usageOfRows, usesOfProject } from './store.ts';

export const volumes = {
  operations: volumeOperations,
  usageOfRows,
  usesOfProject,
  ...driverBacked({
    driver: (drivers: { volume: VolumeDriver }) => drivers.volume,
    faults: 'volume',
    reconciler: (services: ReconcilerDeps, driver) => createVolumeReconciler({ ...services, driver }),
  }),
  events: [{ table: 'volumes', kind: 'volume', access: projectReader }],
} satisfies Resource;
