import { operatorAdmin, tokenReader } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { regionOperations } from './routes.ts';
import type { Regions } from './service.ts';

export const regions = {
  operations: (services: { regions: Regions }) => regionOperations(services.regions),
  events: [
    { table: 'regions', kind: 'region', access: tokenReader },
    { table: 'workers', kind: 'worker', access: operatorAdmin, columns: ['region_ids', 'drivers', 'started_at'] },
  ],
} satisfies Resource;
