import type { Resource } from '../resource.ts';
import { clientOperations } from './routes.ts';
import type { Clients } from './service.ts';

export const clients = {
  operations: (services: { clients: Clients }) => clientOperations(services.clients),
} satisfies Resource;
