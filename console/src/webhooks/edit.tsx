import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import schema from 'schema:UpdateWebhook';
import { useNotClientAdminReason } from '../api/session.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useInitial } from '../ui/form/use-form.ts';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { useClientId, useScope } from '../ui/scope.tsx';
import { hostOf, WEBHOOK, type Webhook, webhookQuery } from './data.ts';

export function EditWebhook() {
  const clientId = useClientId();
  const { webhook: id } = useParams({ strict: false }) as { webhook: string };
  const { data } = useQuery(webhookQuery(clientId, id));
  return data && clientId !== undefined ? <EditDialog webhook={data} clientId={clientId} /> : null;
}

function EditDialog({ webhook: current, clientId }: { webhook: Webhook; clientId: number }) {
  const webhook = useInitial(current);
  const scope = useScope();
  const params = { client_id: clientId, webhook_id: webhook.id };
  const form = useRequestForm<Webhook>({
    call: { operationId: 'updateWebhook', method: 'PATCH', path: WEBHOOK, params },
    schema,
    isEdit: true,
    initial: { url: webhook.url },
    queryKind: 'webhooks',
    sent: (_body, changed) => ({ done: `Updated webhook ${hostOf(changed)}`, to: scope.path('webhooks', webhook.id) }),
  });
  return (
    <FormDialog
      title={`Edit ${hostOf(webhook)}`}
      form={form}
      submitLabel="Save"
      disabledReason={useNotClientAdminReason()}
    >
      <Field form={form} path="url" label="URL" help="Pending and repeated deliveries go to the new URL." />
    </FormDialog>
  );
}
