import { tokenReader } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { taskOperations } from './routes.ts';

export const tasks = {
  operations: taskOperations,
  events: [{ table: 'tasks', kind: 'task', access: tokenReader, silentRemoval: true }],
} satisfies Resource;
