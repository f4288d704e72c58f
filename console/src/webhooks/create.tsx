import schema from 'schema:CreateWebhook';
import { useState } from 'react';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { useNotClientAdminReason } from '../api/session.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useClientId } from '../ui/scope.tsx';
import { hostOf, type NewWebhook, WEBHOOKS } from './data.ts';
import { WebhookSecret } from './webhook-secret.tsx';

export function CreateWebhook() {
  const clientId = useClientId();
  const [created, setCreated] = useState<NewWebhook | null>(null);
  if (created) return <WebhookSecret title={`Created webhook ${hostOf(created)}`} secret={created.secret} />;
  return clientId === undefined ? null : <CreateDialog clientId={clientId} setCreated={setCreated} />;
}

interface CreateDialogProps {
  readonly clientId: number;
  readonly setCreated: (webhook: NewWebhook) => void;
}

function CreateDialog({ clientId, setCreated }: CreateDialogProps) {
  const params = { client_id: clientId };
  const form = useForm({
    call: { operationId: 'createWebhook', method: 'POST', path: WEBHOOKS, params },
    schema,
    initial: { url: '', secret: '' },
    send: async (body) => {
      setCreated(await unwrap(api.POST(WEBHOOKS, { params: { path: params }, body: body as never })));
      void queryClient.invalidateQueries({ queryKey: ['webhooks'] });
    },
  });
  return (
    <FormDialog
      title="Create webhook"
      form={form}
      submitLabel="Create webhook"
      disabledReason={useNotClientAdminReason()}
      isForSecret
    >
      <Field form={form} path="url" label="URL" placeholder="https://hooks.example.com/cloudyard" />
      <Field form={form} path="secret" label="Secret" type="password" />
    </FormDialog>
  );
}
