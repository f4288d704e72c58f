import schema from 'schema:CreateWebhook';
import { useState } from 'react';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { CodeBlock } from '../ui/copy.tsx';
import { DialogRoute, useClose } from '../ui/dialog.tsx';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useClientId } from '../ui/scope.tsx';
import { hostOf, WEBHOOKS } from './data.ts';
import type { NewWebhook } from './data.ts';

export function CreateWebhook() {
  const clientId = useClientId();
  const [created, setCreated] = useState<NewWebhook | null>(null);
  if (created) return <Secret webhook={created} />;
  return clientId === undefined ? null : <CreateDialog clientId={clientId} setCreated={setCreated} />;
}

interface CreateDialogProps {
  readonly clientId: number;
  readonly setCreated: (webhook: NewWebhook) => void;
}

function CreateDialog({ clientId, setCreated }: CreateDialogProps) {
  const params = { client_id: clientId };
  const form = useForm({
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
      call={{ operationId: 'createWebhook', method: 'POST', path: WEBHOOKS, params }}
    >
      <Field form={form} path="url" label="URL" placeholder="https://hooks.example.com/cloudyard" />
      <Field form={form} path="secret" label="Secret" type="password" />
    </FormDialog>
  );
}

/** The only time that the key of the signature is shown. */
function Secret({ webhook }: { webhook: NewWebhook }) {
  const close = useClose();
  return (
    <DialogRoute title={`Created webhook ${hostOf(webhook)}`}>
      <div className="stack">
        <p>Check the signature of each request with this secret. It is shown only now.</p>
        <CodeBlock text={webhook.secret} what="secret" />
        <div className="dialog-actions">
          <button type="button" className="button primary" onClick={close}>
            Done
          </button>
        </div>
      </div>
    </DialogRoute>
  );
}
