import type { Resource } from '../resource.ts';
import { auditOperations } from './routes.ts';
import type { AuditLog } from './service.ts';

export const audit = {
  operations: (services: { auditLog: AuditLog }) => auditOperations(services.auditLog),
  // Each entry belongs to a change that has its own events.
  events: [],
} satisfies Resource;
