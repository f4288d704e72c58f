import { type SubmitEvent, useId, useRef, useState } from 'react';
import { ApiError, ConnectionError, messageOf } from '../api/errors.ts';
import { CodeBlock } from '../ui/copy.tsx';
import { DialogRoute } from '../ui/dialog.tsx';
import { type Scope, useScope } from '../ui/scope.tsx';
import { type ApiKey, CurrentKey } from './data.ts';

/** Checks a secret against a container, as a proxy does. */
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
  const [isSubmitting, setSubmitting] = useState(false);
  const path = pathOf(scope, namespace, name);
  // The outcome of other values is not shown, even if it arrives after a change.
  const version = useRef(0);
  const change = (set: (value: string) => void) => (value: string) => {
    version.current += 1;
    setOutcome(null);
    set(value);
  };
  async function verify(event: SubmitEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    if (isSubmitting) return;
    const checked = version.current;
    setOutcome(null);
    setSubmitting(true);
    const next = await authorize(path, secret).catch((error: unknown) => ({ isOpen: false, text: messageOf(error) }));
    if (checked === version.current) setOutcome(next);
    setSubmitting(false);
  }
  return (
    <DialogRoute title={`Verify ${apiKey.name}`} className="side-panel">
      <form className="form" onSubmit={(event) => void verify(event)}>
        <p>Shows the response that a proxy would get for a request with this secret.</p>
        <TextField label="Secret" value={secret} set={change(setSecret)} type="password" />
        <TextField label="Namespace" value={namespace} set={change(setNamespace)} />
        <TextField label="Container" value={name} set={change(setName)} />
        {outcome && (
          <p className={`notice ${outcome.isOpen ? '' : 'bad'}`} role="status">
            {outcome.text}
          </p>
        )}
        <div className="dialog-actions">
          <button type="submit" className="button primary" aria-disabled={isSubmitting}>
            {isSubmitting && <span className="spinner" aria-hidden="true" />} Verify
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
  if (!/^[\x20-\x7e]+$/.test(secret)) return { isOpen: false, text: 'A secret has ASCII characters only.' };
  const response = await fetch(path, { headers: { 'X-API-Key': secret }, credentials: 'omit' }).catch(() => {
    throw new ConnectionError();
  });
  if (response.ok) return { isOpen: true, text: 'The key opens the container.' };
  const reason = response.headers.get('X-Cloudyard-Reason');
  // Every refusal has a reason. Another response says nothing about the key.
  if (reason === null) throw new ApiError(response.status, null);
  return { isOpen: false, text: `${response.status}: ${reason.replaceAll('_', ' ')}` };
}
