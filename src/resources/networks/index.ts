import { projectReader } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { networkOperations } from './routes.ts';
import { usageOfRows, usesOfProject } from './store.ts';

export const networks = {
  operations: networkOperations,
  usageOfRows,
  usesOfProject,
  events: [{ table: 'networks', kind: 'network', access: projectReader }],
} satisfies Resource;
