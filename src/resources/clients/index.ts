import type { Resource } from '../resource.ts';
import { clientRoutes } from './routes.ts';
import type { Clients } from './service.ts';

export const clients = {
  operations: (services: { clients: Clients }) => clientRoutes(services.clients),
} satisfies Resource;
