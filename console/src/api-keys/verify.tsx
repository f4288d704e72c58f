import { useId, useState } from 'react';
import type { SubmitEvent } from 'react';
import { ConnectionError, messageOf } from '../api/errors.ts';
import { CodeBlock } from '../ui/copy.tsx';
import { DialogRoute } from '../ui/dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import type { Scope } from '../ui/scope.tsx';
import { CurrentKey } from './current-key.tsx';
import type { ApiKey } from './data.ts';

/** Tries a secret on a container, as a proxy does. */
export function VerifyApiKey() {
  return <CurrentKey>{(key) => <VerifyDialog apiKey={key} />}</CurrentKey>;
}

interface Outcome {
  readonly isOpen: boolean;
  readonly text: string;
}

function VerifyDialog({ apiKey }: { apiKey: ApiKey }) {
  const scope = useScope();
  const [first] = apiKey.containers;
  const [secret, setSecret] = useState('');
  const [namespace, setNamespace] = useState(first?.namespace ?? '');
  const [name, setName] = useState(first?.name ?? '');
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const path = pathOf(scope, namespace, name);
  async function verify(event: SubmitEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    setOutcome(await authorize(path, secret).catch((error: unknown) => ({ isOpen: false, text: messageOf(error) })));
  }
  return (
    <DialogRoute title={`Verify ${apiKey.name}`} className="side-panel">
      <form className="form" onSubmit={(event) => void verify(event)}>
        <p>The server answers what a proxy would get for a request with this secret.</p>
        <TextField label="Secret" value={secret} set={setSecret} type="password" />
        <TextField label="Namespace" value={namespace} set={setNamespace} />
        <TextField label="Container" value={name} set={setName} />
        {outcome && (
          <p className={`notice ${outcome.isOpen ? '' : 'bad'}`} role="status">
            {outcome.text}
          </p>
        )}
        <div className="dialog-actions">
          <button type="submit" className="button primary">
            Verify
          </button>
        </div>
        <CodeBlock text={`curl -i -H "X-API-Key: $KEY" '${location.origin}${path}'`} what="command" />
      </form>
    </DialogRoute>
  );
}

interface TextFieldProps {
  readonly label: string;
  readonly value: string;
  readonly set: (value: string) => void;
  readonly type?: string;
}

function TextField({ label, value, set, type = 'text' }: TextFieldProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type={type}
        required
        autoComplete="off"
        spellCheck={false}
        value={value}
        onChange={(event) => set(event.target.value)}
      />
    </div>
  );
}

function pathOf({ project, region }: Scope, namespace: string, name: string): string {
  const segments = [project, region, namespace, name].map((segment) =>
    encodeURIComponent(segment).replaceAll("'", '%27'),
  );
  return `/cloudyard/v1/authorize/${segments.join('/')}`;
}

/** Without the session: the key is the credential. */
async function authorize(path: string, secret: string): Promise<Outcome> {
  const response = await fetch(path, { headers: { 'X-API-Key': secret }, credentials: 'omit' }).catch(() => {
    throw new ConnectionError();
  });
  if (response.ok) return { isOpen: true, text: 'The key opens the container.' };
  const reason = response.headers.get('X-Cloudyard-Reason') ?? 'refused';
  return { isOpen: false, text: `${response.status}: ${reason.replaceAll('_', ' ')}` };
}
