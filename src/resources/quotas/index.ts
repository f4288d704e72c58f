import { clientReader } from '../../authz/access.ts';
import type { QuotaAudit } from '../../quota/audit.ts';
import type { Resource } from '../resource.ts';
import { quotaOperations } from './routes.ts';
import type { ClientQuotas } from './service.ts';

export const quotas = {
  operations: (services: { clientQuotas: ClientQuotas; quotaAudit: QuotaAudit }) =>
    quotaOperations(services.clientQuotas, services.quotaAudit),
  // All counters of a client in a region are one resource, with the ID of the client.
  events: [
    {
      table: 'quota_counters',
      kind: 'quota',
      access: clientReader,
      id: 'r.client_id',
      columns: ['usage', 'limit_override'],
      updatesOnly: true,
    },
  ],
} satisfies Resource;
