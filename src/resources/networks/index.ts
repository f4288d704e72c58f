import { projectReader } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { networkOperations } from './routes.ts';
import type { Networks } from './service.ts';
import { usageOfRows, usesOfProject } from './store.ts';

export const networks = {
  operations: (services: { networks: Networks }) => networkOperations(services.networks),
  usageOfRows,
  usesOfProject,
  events: [{ table: 'networks', kind: 'network', access: projectReader }],
} satisfies Resource;
