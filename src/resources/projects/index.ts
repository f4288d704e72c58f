import { projectReader } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { projectOperations } from './routes.ts';
import { usageOfRows } from './store.ts';

export const projects = {
  operations: projectOperations,
  usageOfRows,
  events: [{ table: 'projects', kind: 'project', access: projectReader, project: 'r.id', softDelete: true }],
} satisfies Resource;
