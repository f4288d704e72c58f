import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import schema from 'schema:UpdateWebhook';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { useNotClientAdminReason } from '../api/session.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm, useInitial } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { useClientId, useScope } from '../ui/scope.tsx';
import { showToast } from '../ui/toasts.tsx';
import { hostOf, WEBHOOK, webhookQuery } from './data.ts';
import type { Webhook } from './data.ts';

export function EditWebhook() {
  const clientId = useClientId();
  const { webhook: id } = useParams({ strict: false }) as { webhook: string };
  const { data } = useQuery(webhookQuery(clientId, id));
  return data && clientId !== undefined ? <EditDialog webhook={data} clientId={clientId} /> : null;
}

function EditDialog({ webhook: current, clientId }: { webhook: Webhook; clientId: number }) {
  const webhook = useInitial(current);
  const scope = useScope();
  const leave = useLeave();
  const params = { client_id: clientId, webhook_id: webhook.id };
  const form = useForm({
    schema,
    isEdit: true,
    initial: { url: webhook.url },
    send: async (body) => {
      const changed = await unwrap(api.PATCH(WEBHOOK, { params: { path: params }, body: body as never }));
      showToast({ tone: 'ok', text: `Updated webhook ${hostOf(changed)}` });
      void queryClient.invalidateQueries({ queryKey: ['webhooks'] });
      await leave({ to: scope.path('webhooks', webhook.id) });
    },
  });
  return (
    <FormDialog
      title={`Edit ${hostOf(webhook)}`}
      form={form}
      submitLabel="Save"
      disabledReason={useNotClientAdminReason()}
      call={{ operationId: 'updateWebhook', method: 'PATCH', path: WEBHOOK, params }}
    >
      <Field form={form} path="url" label="URL" help="Pending and repeated deliveries go to the new URL." />
    </FormDialog>
  );
}
