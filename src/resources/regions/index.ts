import { operatorAdmin, tokenReader } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { regionOperations } from './routes.ts';

export const regions = {
  operations: regionOperations,
  events: [
    { table: 'regions', kind: 'region', access: tokenReader },
    { table: 'workers', kind: 'worker', access: operatorAdmin, columns: ['region_ids', 'drivers', 'started_at'] },
  ],
} satisfies Resource;
