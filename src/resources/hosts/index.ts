import type { Resource } from '../resource.ts';
import { hostOperations } from './routes.ts';
import type { Hosts } from './service.ts';

export const hosts = {
  operations: (services: { hosts: Hosts }) => hostOperations(services.hosts),
  // Agents renew their rows each second; the console polls.
  events: [],
} satisfies Resource;
