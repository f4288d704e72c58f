import type { Resource } from '../resource.ts';
import { regionOperations } from './routes.ts';
import type { Regions } from './service.ts';

export const regions = {
  operations: (services: { regions: Regions }) => regionOperations(services.regions),
} satisfies Resource;
