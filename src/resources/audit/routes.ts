/** The operations of the audit log. */
import { Readable } from 'node:stream';
import { tokenAdmin } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { sendInGroups } from '../../http/streamed-list.ts';
import { exportText, formatOf, mediaTypes } from './export.ts';
import { AuditPage, ListAudit } from './schema.ts';
import type { AuditLog } from './service.ts';

const operation = operationsOf({
  name: 'Audit',
  description: 'The audit log has an entry for every change: time, token, origin, and the changed fields.',
});

export const auditOperations = ({ auditLog }: { auditLog: AuditLog }) => [
  operation('GET', '/cloudyard/v1/audit', {
    id: 'listAudit',
    summary: 'List the entries of the audit log',
    description:
      'The newest entry comes first. As `csv` or `jsonl` (`format`, or `Accept: text/csv` or `application/x-ndjson`), the ' +
      'response is a stream of all entries that match. It is cut off when the token is revoked or expires.',
    access: tokenAdmin,
    query: ListAudit,
    response: AuditPage,
    produces: ['application/json', 'text/csv', 'application/x-ndjson'],
    handle: async ({ by, query }, reply) => {
      const format = query.format ?? formatOf(reply.request.headers.accept);
      reply.header('vary', 'accept');
      if (format === 'csv' || format === 'jsonl') {
        const text = exportText(format, auditLog.export(by, query));
        return reply.type(mediaTypes[format]).send(Readable.from(text));
      }
      const { next, entries } = await auditLog.list(by.actor, query);
      return sendInGroups(reply, { next, results: entries });
    },
  }),
];
