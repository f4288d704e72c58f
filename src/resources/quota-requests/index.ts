import { tokenReader } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { quotaRequestOperations } from './routes.ts';

export const quotaRequests = {
  operations: quotaRequestOperations,
  events: [{ table: 'quota_requests', kind: 'quota_request', access: tokenReader }],
} satisfies Resource;
