/** The operations of the audit log. */
import { tokenAdmin } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { sendInGroups } from '../../http/streamed-list.ts';
import { AuditPage, ListAudit } from './schema.ts';
import type { AuditLog } from './service.ts';

const operation = operationsOf({
  name: 'Audit',
  description: 'The audit log has an entry for every change: time, token, origin, and the changed fields.',
});

export const auditOperations = (auditLog: AuditLog) => [
  operation('GET', '/cloudyard/v1/audit', {
    id: 'listAudit',
    summary: 'List the entries of the audit log',
    description: 'The newest entry comes first.',
    access: tokenAdmin,
    query: ListAudit,
    answer: AuditPage,
    handle: async ({ by, query }, reply) => {
      const { next, entries } = await auditLog.list(by.actor, query);
      return sendInGroups(reply, { next, results: entries });
    },
  }),
];
