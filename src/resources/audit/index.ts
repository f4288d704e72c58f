import type { Resource } from '../resource.ts';
import { auditOperations } from './routes.ts';
import type { AuditLog } from './service.ts';

export const audit = {
  operations: (services: { auditLog: AuditLog }) => auditOperations(services.auditLog),
} satisfies Resource;
