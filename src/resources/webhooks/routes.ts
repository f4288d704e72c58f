import { Type } from 'typebox';
import type { Routes } from '../../http/app.ts';
import { ClientPath, CreateWebhook, NewWebhook, Webhook, WebhookPath, Webhooks as WebhookList } from './schema.ts';
import type { Webhooks } from './service.ts';

const tags = ['Webhooks'];
const many = '/cloudyard/v1/clients/:client_id/webhooks';
const one = `${many}/:webhook_id`;

export function webhookRoutes(webhooks: Webhooks): Routes {
  return (app) => {
    app.post(
      many,
      {
        schema: {
          operationId: 'createWebhook',
          summary: 'Have notifications posted to a URL; the answer shows the secret, once',
          tags,
          params: ClientPath,
          body: CreateWebhook,
          response: { 201: NewWebhook },
        },
      },
      async (request, reply) => {
        const webhook = await webhooks.create(request.by, request.params.client_id, request.body);
        return reply.code(201).send(webhook);
      },
    );
    app.get(
      many,
      {
        schema: {
          operationId: 'listWebhooks',
          summary: 'List the webhooks of a client, oldest first',
          tags,
          params: ClientPath,
          response: { 200: WebhookList },
        },
      },
      (request) => webhooks.list(request.params.client_id),
    );
    app.get(
      one,
      {
        schema: {
          operationId: 'getWebhook',
          summary: 'Get a webhook',
          tags,
          params: WebhookPath,
          response: { 200: Webhook },
        },
      },
      (request) => webhooks.get(request.params.client_id, request.params.webhook_id),
    );
    app.delete(
      one,
      {
        schema: {
          operationId: 'deleteWebhook',
          summary: 'Delete a webhook',
          tags,
          params: WebhookPath,
          response: { 204: Type.Null({ description: 'Done' }) },
        },
      },
      async (request, reply) => {
        await webhooks.delete(request.by, request.params.client_id, request.params.webhook_id);
        return reply.code(204).send(null);
      },
    );
  };
}
