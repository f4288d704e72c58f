import { clientReader } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { thresholdOperations } from './routes.ts';

export const thresholds = {
  operations: thresholdOperations,
  events: [{ table: 'quota_thresholds', kind: 'threshold', access: clientReader, id: 'r.client_id' }],
} satisfies Resource;
