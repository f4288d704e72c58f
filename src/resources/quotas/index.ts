import type { Resource } from '../resource.ts';
import { quotaOperations } from './routes.ts';
import type { ClientQuotas } from './service.ts';

export const quotas = {
  operations: (services: { clientQuotas: ClientQuotas }) => quotaOperations(services.clientQuotas),
} satisfies Resource;
