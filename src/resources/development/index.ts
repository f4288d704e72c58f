import type { Resource } from '../resource.ts';
import { developmentOperations } from './routes.ts';
import type { Development } from './service.ts';

export const development = {
  /** `development` is null unless development mode is on. */
  operations: (services: { development: Development | null }, faultNames) =>
    services.development ? developmentOperations(services.development, faultNames) : [],
} satisfies Resource;
