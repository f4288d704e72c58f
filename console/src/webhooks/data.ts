import { queryOptions } from '@tanstack/react-query';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';

export type Webhook = components['schemas']['Webhook'];
export type NewWebhook = components['schemas']['NewWebhook'];

export const WEBHOOKS = '/cloudyard/v1/clients/{client_id}/webhooks';
export const WEBHOOK = `${WEBHOOKS}/{webhook_id}` as const;

export const webhooksQuery = (clientId: number | undefined) =>
  queryOptions({
    queryKey: ['webhooks', clientId],
    queryFn: () => unwrap(api.GET(WEBHOOKS, { params: { path: { client_id: clientId! } } })),
    enabled: clientId !== undefined,
  });

export const webhookQuery = (clientId: number | undefined, id: string) =>
  queryOptions({
    queryKey: ['webhooks', clientId, id],
    queryFn: () => unwrap(api.GET(WEBHOOK, { params: { path: { client_id: clientId!, webhook_id: id } } })),
    enabled: clientId !== undefined,
  });

/** The receiver without its path, which may be a secret. */
export function hostOf({ url }: { readonly url: string }): string {
  return new URL(url).host;
}
