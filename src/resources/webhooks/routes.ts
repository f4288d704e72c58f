/** The operations of webhooks. */
import { clientAdmin, clientMember } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { IdOf } from '../../http/path-parameters.ts';
import { CreateWebhook, NewWebhook, UpdatedWebhook, UpdateWebhook, Webhook, WebhookCollection } from './schema.ts';
import type { Webhooks } from './service.ts';

const operation = operationsOf(
  {
    name: 'Webhooks',
    description: 'A webhook is a URL that receives the notifications of a client, as signed POST requests.',
  },
  { webhook_id: IdOf('the webhook') },
);
const all = '/cloudyard/v1/clients/:client_id/webhooks';
const one = `${all}/:webhook_id`;

export const webhookOperations = ({ webhooks }: { webhooks: Webhooks }) => [
  operation('POST', all, {
    id: 'createWebhook',
    summary: 'Create a webhook',
    description: 'Only this response contains the secret.',
    access: clientAdmin,
    body: CreateWebhook,
    bodyErrors: webhooks.bodyErrors,
    response: NewWebhook,
    status: 201,
    handle: ({ by, params, body }) => webhooks.create(by, params.client_id, body),
  }),
  operation('GET', all, {
    id: 'listWebhooks',
    summary: 'List the webhooks of a client',
    access: clientMember,
    response: WebhookCollection,
    handle: ({ params }) => webhooks.list(params.client_id),
  }),
  operation('GET', one, {
    id: 'getWebhook',
    summary: 'Get a webhook',
    access: clientMember,
    response: Webhook,
    handle: ({ params }) => webhooks.get(params.client_id, params.webhook_id),
  }),
  operation('PATCH', one, {
    id: 'updateWebhook',
    summary: 'Update a webhook',
    description: 'Changes the URL or the secret. Pending and repeated deliveries use the new values.',
    access: clientAdmin,
    body: UpdateWebhook,
    bodyErrors: webhooks.bodyErrors,
    response: UpdatedWebhook,
    handle: ({ by, params, body }) => webhooks.update(by, params.client_id, params.webhook_id, body),
  }),
  operation('DELETE', one, {
    id: 'deleteWebhook',
    summary: 'Delete a webhook',
    access: clientAdmin,
    handle: ({ by, params }) => webhooks.delete(by, params.client_id, params.webhook_id),
  }),
];
