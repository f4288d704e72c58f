import { clientReader } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { clientOperations } from './routes.ts';

export const clients = {
  operations: clientOperations,
  events: [{ table: 'clients', kind: 'client', access: clientReader }],
} satisfies Resource;
