import type { Resource } from '../resource.ts';
import { projectRoutes } from './routes.ts';
import type { Projects } from './service.ts';
import { usageOfRows } from './store.ts';

export const projects = {
  operations: (services: { projects: Projects }) => projectRoutes(services.projects),
  usageOfRows,
} satisfies Resource;
