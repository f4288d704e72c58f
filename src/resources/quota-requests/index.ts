import { tokenReader } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { quotaRequestOperations } from './routes.ts';
import type { QuotaRequests } from './service.ts';

export const quotaRequests = {
  operations: (services: { quotaRequests: QuotaRequests }) => quotaRequestOperations(services.quotaRequests),
  events: [{ table: 'quota_requests', kind: 'quota_request', access: tokenReader }],
} satisfies Resource;
