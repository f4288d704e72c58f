import type { Resource } from '../resource.ts';
import { sessionOperations } from './routes.ts';
import type { Sessions } from './service.ts';

export const sessions = {
  operations: sessionOperations,
  duties: (services: { sessions: Sessions }) => [{ seconds: 3600, work: services.sessions.removeEnded }],
  // A session is read only by itself.
  events: [],
} satisfies Resource;
