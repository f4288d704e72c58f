import { projectReader } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { subnetOperations } from './routes.ts';
import { usageOfRows, usesOfProject } from './store.ts';

export const subnets = {
  operations: subnetOperations,
  usageOfRows,
  usesOfProject,
  events: [{ table: 'subnets', kind: 'subnet', access: projectReader }],
} satisfies Resource;
