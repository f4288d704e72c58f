import type { Resource } from '../resource.ts';
import { webhookRoutes } from './routes.ts';
import type { Webhooks } from './service.ts';

export const webhooks = {
  operations: (services: { webhooks: Webhooks }) => webhookRoutes(services.webhooks),
  reencrypt: (services: { webhooks: Webhooks }) => services.webhooks.reencrypt(),
} satisfies Resource;
