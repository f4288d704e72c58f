import type { Resource } from '../resource.ts';
import { networkOperations } from './routes.ts';
import type { Networks } from './service.ts';
import { usageOfRows, usesOfProject } from './store.ts';

export const networks = {
  operations: (services: { networks: Networks }) => networkOperations(services.networks),
  usageOfRows,
  usesOfProject,
} satisfies Resource;
