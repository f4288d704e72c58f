import { Type } from 'typebox';
import type { Static } from 'typebox';
import { IntegerId, Nullable, Uuid } from '../../http/shapes.ts';

export const ClientPath = Type.Object({ client_id: IntegerId });
export const WebhookPath = Type.Object({ client_id: IntegerId, webhook_id: Uuid });

export const CreateWebhook = Type.Object(
  {
    url: Type.String({ maxLength: 2000, format: 'uri', description: 'https:// or http://' }),
    secret: Type.Optional(
      Nullable(
        Type.String({ minLength: 8, maxLength: 255, description: 'What calls are signed with; made up when absent' }),
      ),
    ),
  },
  { additionalProperties: false },
);
export type CreateWebhook = Static<typeof CreateWebhook>;

const shown = { id: Uuid, url: Type.String(), created_at: Type.String() };

export const Webhook = Type.Object(shown);
export type Webhook = Static<typeof Webhook>;

/** The only answer that shows the secret. */
export const NewWebhook = Type.Object({ ...shown, secret: Type.String({ description: 'Shown this once' }) });
export type NewWebhook = Static<typeof NewWebhook>;

export const Webhooks = Type.Object({ count: Type.Integer(), results: Type.Array(Webhook) });
