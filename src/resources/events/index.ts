import type { Resource } from '../resource.ts';
import { eventOperations } from './routes.ts';
import type { Events } from './service.ts';

export const events = {
  operations: (services: { events: Events }, { events: kinds }) => eventOperations(services.events, kinds),
  events: [],
} satisfies Resource;
