import type { Resource } from '../resource.ts';
import { quotaRoutes } from './routes.ts';
import type { ClientQuotas } from './service.ts';

export const quotas = {
  operations: (services: { clientQuotas: ClientQuotas }) => quotaRoutes(services.clientQuotas),
} satisfies Resource;
