import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useState } from 'react';
import schema from 'schema:UpdateWebhook';
import { api, unwrap } from '../api/client.ts';
import { useNotClientAdminReason } from '../api/session.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useClientId } from '../ui/scope.tsx';
import { hostOf, WEBHOOK, type Webhook, webhookQuery } from './data.ts';
import { WebhookSecret } from './webhook-secret.tsx';

/** Replaces the key of the signature. */
export function NewWebhookSecret() {
  const clientId = useClientId();
  const { webhook: id } = useParams({ strict: false }) as { webhook: string };
  const { data } = useQuery(webhookQuery(clientId, id));
  return data && clientId !== undefined ? <SecretDialog webhook={data} clientId={clientId} /> : null;
}

function SecretDialog({ webhook, clientId }: { webhook: Webhook; clientId: number }) {
  const [secret, setSecret] = useState<string | null>(null);
  const reason = useNotClientAdminReason();
  const params = { client_id: clientId, webhook_id: webhook.id };
  const form = useForm({
    call: { operationId: 'updateWebhook', method: 'PATCH', path: WEBHOOK, params },
    schema,
    initial: { secret: '' },
    // Without a text the server generates one.
    toBody: ({ secret: typed }) => ({ secret: typed === '' ? null : typed }),
    send: async (body) => {
      const answer = await unwrap(api.PATCH(WEBHOOK, { params: { path: params }, body: body as never }));
      setSecret(answer.secret ?? '');
    },
  });
  if (secret !== null) return <WebhookSecret title={`New secret of ${hostOf(webhook)}`} secret={secret} />;
  return (
    <FormDialog
      title={`New secret for ${hostOf(webhook)}`}
      form={form}
      submitLabel="Replace secret"
      disabledReason={reason}
      isForSecret
      isDangerous
    >
      <div className="notice warn">
        Deliveries are signed with the new secret immediately. Configure the receiver to accept it.
      </div>
      <Field form={form} path="secret" label="Secret" type="password" help="Leave it empty to generate one." />
    </FormDialog>
  );
}
