import type { Resource } from '../resource.ts';
import { subnetRoutes } from './routes.ts';
import type { Subnets } from './service.ts';
import { usageOfRows, usesOfProject } from './store.ts';

export const subnets = {
  operations: (services: { subnets: Subnets }) => subnetRoutes(services.subnets),
  usageOfRows,
  usesOfProject,
} satisfies Resource;
