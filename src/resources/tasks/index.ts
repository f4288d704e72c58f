import type { Resource } from '../resource.ts';
import { taskRoutes } from './routes.ts';
import type { TaskViews } from './service.ts';

export const tasks = {
  operations: (services: { taskViews: TaskViews }) => taskRoutes(services.taskViews),
} satisfies Resource;
