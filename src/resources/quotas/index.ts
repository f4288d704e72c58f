import type { QuotaAudit } from '../../quota/audit.ts';
import type { Resource } from '../resource.ts';
import { quotaOperations } from './routes.ts';
import type { ClientQuotas } from './service.ts';

export const quotas = {
  operations: (services: { clientQuotas: ClientQuotas; quotaAudit: QuotaAudit }) =>
    quotaOperations(services.clientQuotas, services.quotaAudit),
} satisfies Resource;
