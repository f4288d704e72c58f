import { clientReader } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { thresholdOperations } from './routes.ts';
import type { Thresholds } from './service.ts';

export const thresholds = {
  operations: (services: { thresholds: Thresholds }) => thresholdOperations(services.thresholds),
  events: [{ table: 'quota_thresholds', kind: 'threshold', access: clientReader, id: 'r.client_id' }],
} satisfies Resource;
