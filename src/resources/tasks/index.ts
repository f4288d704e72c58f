import { tokenReader } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { taskOperations } from './routes.ts';
import type { TaskViews } from './service.ts';

export const tasks = {
  operations: (services: { taskViews: TaskViews }) => taskOperations(services.taskViews),
  events: [{ table: 'tasks', kind: 'task', access: tokenReader, silentRemoval: true }],
} satisfies Resource;
