import type { Resource } from '../resource.ts';
import { auditOperations } from './routes.ts';

export const audit = {
  operations: auditOperations,
  // Each entry belongs to a change that has its own events.
  events: [],
} satisfies Resource;
