import { clientReader } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { clientOperations } from './routes.ts';
import type { Clients } from './service.ts';

export const clients = {
  operations: (services: { clients: Clients }) => clientOperations(services.clients),
  events: [{ table: 'clients', kind: 'client', access: clientReader }],
} satisfies Resource;
