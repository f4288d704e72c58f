import { SecretOnce } from '../ui/secret-once.tsx';

/** The only time that the key of the signature is shown. */
export function WebhookSecret({ title, secret }: { title: string; secret: string }) {
  return (
    <SecretOnce title={title} what="secret" secret={secret}>
      <p>Check the signature of each request with this secret.</p>
    </SecretOnce>
  );
}
