import type { Resource } from '../resource.ts';
import { regionRoutes } from './routes.ts';
import type { Regions } from './service.ts';

export const regions = {
  operations: (services: { regions: Regions }) => regionRoutes(services.regions),
} satisfies Resource;
