import { useState } from 'react';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useScope } from '../ui/scope.tsx';
import { CurrentSecret, type PullSecret, secretParams, VERIFY } from './data.ts';

type Verification = components['schemas']['PullSecretVerification'];

export function VerifyPullSecret() {
  return <CurrentSecret>{(secret) => <VerifyDialog secret={secret} />}</CurrentSecret>;
}

function VerifyDialog({ secret }: { secret: PullSecret }) {
  const params = secretParams(useScope(), secret.name);
  const [result, setResult] = useState<Verification | null>(null);
  const form = useForm({
    call: { operationId: 'verifyPullSecret', method: 'POST', path: VERIFY, params },
    schema: {},
    initial: {},
    send: async () => setResult(await unwrap(api.POST(VERIFY, { params: { path: params } }))),
  });
  return (
    <FormDialog title={`Verify ${secret.name}`} form={form} submitLabel="Verify">
      <p>
        The server logs in to <bdi>{secret.registry}</bdi> as <bdi>{secret.login}</bdi>. The audit log records that the
        password was used.
      </p>
      {result && (
        <p className={`notice ${result.verified ? '' : 'bad'}`} role="status">
          <strong>{result.outcome.replaceAll('_', ' ')}</strong>: {result.message}
        </p>
      )}
    </FormDialog>
  );
}
