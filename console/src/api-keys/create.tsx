import schema from 'schema:CreateApiKey';
import { useState } from 'react';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { CodeBlock } from '../ui/copy.tsx';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { scopeParams, useScope } from '../ui/scope.tsx';
import { SecretOnce } from '../ui/secret-once.tsx';
import { KEYS, KIND } from './data.ts';
import { KeyFields } from './fields.tsx';

export function CreateApiKey() {
  const params = scopeParams(useScope());
  const [created, setCreated] = useState<{ readonly name: string; readonly secret: string } | null>(null);
  const form = useForm({
    call: { operationId: 'createApiKey', method: 'POST', path: KEYS, params },
    schema,
    initial: { name: '', containers: [{ namespace: '', name: '' }], description: '', is_disabled: false },
    send: async (body) => {
      setCreated(await unwrap(api.POST(KEYS, { params: { path: params }, body: body as never })));
      void queryClient.invalidateQueries({ queryKey: [KIND] });
    },
  });
  if (created) {
    return (
      <SecretOnce title={`Secret of API key ${created.name}`} what="secret" secret={created.secret}>
        {(keep) => (
          <>
            <p className="muted">Clients send it in the header X-API-Key:</p>
            <CodeBlock
              what="curl command"
              text={`curl -H 'X-API-Key: ${created.secret}' https://CONTAINER_HOST/`}
              onCopied={keep}
            />
          </>
        )}
      </SecretOnce>
    );
  }
  return (
    <FormDialog title="Create API key" form={form} submitLabel="Create API key" isForSecret>
      <Field form={form} path="name" label="Name" />
      <KeyFields form={form} />
      <Field form={form} path="is_disabled" label="Create it disabled" help="It opens nothing until it is enabled." />
    </FormDialog>
  );
}
