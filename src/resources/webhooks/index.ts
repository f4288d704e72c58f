import { clientMember } from '../../authz/access.ts';
import type { Resource } from '../resource.ts';
import { webhookOperations } from './routes.ts';
import type { Webhooks } from './service.ts';

export const webhooks = {
  operations: webhookOperations,
  reencrypt: (services: { webhooks: Webhooks }) => services.webhooks.reencrypt(),
  events: [{ table: 'webhooks', kind: 'webhook', access: clientMember }],
} satisfies Resource;
