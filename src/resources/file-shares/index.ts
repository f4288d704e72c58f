import type { FileShareDriver } from '../../drivers/file-share.ts';
import { driverBacked } from '../resource.ts';
import type { ReconcilerServices, Resource } from '../resource.ts';
import { createFileShareReconciler } from './reconcile.ts';
import { fileShareRoutes } from './routes.ts';
import type { FileShares } from './service.ts';
import { usageOfRows, usesOfProject } from './store.ts';

export const fileShares = {
  operations: (services: { fileShares: FileShares }) => fileShareRoutes(services.fileShares),
  usageOfRows,
  usesOfProject,
  ...driverBacked({
    driver: (drivers: { fileShare: FileShareDriver }) => drivers.fileShare,
    faults: 'file_share',
    reconciler: (services: ReconcilerServices, driver) => createFileShareReconciler({ ...services, driver }),
  }),
} satisfies Resource;
