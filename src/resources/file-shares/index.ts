import { projectReader } from '../../authz/access.ts';
import type { FileShareDriver } from '../../drivers/file-share.ts';
import { driverBacked, type Resource } from '../resource.ts';
import type { ReconcilerDeps } from '../reconcile-kit.ts';
import { createFileShareReconciler, createUsageRecorder } from './reconcile.ts';
import { fileShareOperations } from './routes.ts';
import { usageOfRows, usesOfProject } from './store.ts';

const share = { kind: 'file_share', access: projectReader };
const owner = { table: 'file_shares', id: 'c.file_share_id' };

export const fileShares = {
  operations: fileShareOperations,
  usageOfRows,
  usesOfProject,
  ...driverBacked({
    driver: (drivers: { fileShare: FileShareDriver }) => drivers.fileShare,
    faults: 'file_share',
    reconciler: (services: ReconcilerDeps, driver) => createFileShareReconciler({ ...services, driver }),
    duties: ({ db }: ReconcilerDeps, driver) => [{ seconds: 60, work: createUsageRecorder({ db, driver }) }],
  }),
  events: [
    { ...share, table: 'file_shares' },
    { ...share, table: 'file_share_access_rules', owner },
    { ...share, table: 'file_share_usage', owner },
  ],
} satisfies Resource;
