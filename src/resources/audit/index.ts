import type { Resource } from '../resource.ts';
import { auditRoutes } from './routes.ts';
import type { AuditLog } from './service.ts';

export const audit = {
  operations: (services: { auditLog: AuditLog }) => auditRoutes(services.auditLog),
} satisfies Resource;
