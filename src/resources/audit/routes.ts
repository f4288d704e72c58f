/** The HTTP operations of the audit log. */
import type { Routes } from '../../http/app.ts';
import { sendInGroups } from '../../http/streamed-list.ts';
import { AuditPage, ListAudit } from './schema.ts';
import type { AuditLog } from './service.ts';

export function auditRoutes(auditLog: AuditLog): Routes {
  return (app) => {
    app.get(
      '/cloudyard/v1/audit',
      {
        schema: {
          operationId: 'listAudit',
          summary: 'List who changed what, newest first',
          tags: ['Audit'],
          querystring: ListAudit,
          response: { 200: AuditPage },
        },
      },
      async (request, reply) => {
        const { next, entries } = await auditLog.list(request.by.actor, request.query);
        return sendInGroups(reply, { next, results: entries });
      },
    );
  };
}
