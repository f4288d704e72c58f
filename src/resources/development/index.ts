import { operatorAdmin } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { developmentOperations } from './routes.ts';
import type { Development } from './service.ts';

export const development = {
  /** `development` is null unless development mode is on. */
  operations: (services: { development: Development | null }, { faults }) =>
    services.development ? developmentOperations(services.development, faults) : [],
  events: [
    { table: 'development_clock', kind: 'development_clock', access: operatorAdmin, id: `'clock'`, updatesOnly: true },
    { table: 'development_faults', kind: 'development_fault', access: operatorAdmin },
  ],
} satisfies Resource;
