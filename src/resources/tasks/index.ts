import type { Resource } from '../resource.ts';
import { taskOperations } from './routes.ts';
import type { TaskViews } from './service.ts';

export const tasks = {
  operations: (services: { taskViews: TaskViews }) => taskOperations(services.taskViews),
} satisfies Resource;
