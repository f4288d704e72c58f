import { useQuery } from '@tanstack/react-query';
import { useEffect, useId } from 'react';
import { secretsQuery } from '../../secrets/data.ts';
import type { Secret } from '../../secrets/data.ts';
import { Field, FieldErrors } from '../../ui/form/field.tsx';
import type { Form } from '../../ui/form/use-form.ts';
import { useScope } from '../../ui/scope.tsx';
import { formatDate, parseDate } from '../../ui/time.tsx';

/** A certificate as a choice: its name and until when it can be used. */
export function secretLabel({ name, expiration }: Secret): string {
  return expiration === null ? name : `${name} (until ${formatDate(parseDate(expiration))})`;
}

/** The certificate of a listener, and further ones by server name. */
export function CertificateFields({ form, prefix, isRequired }: { form: Form; prefix: string; isRequired: boolean }) {
  const all = useQuery(secretsQuery(useScope())).data?.results ?? [];
  const certificates = all.filter(({ secret_type }) => secret_type === 'certificate');
  return (
    <>
      <Field
        form={form}
        path={`${prefix}secret_id`}
        isRequired={isRequired}
        label="Certificate"
        help={certificates.length === 0 ? 'This project has no certificate yet: create a secret first.' : ''}
        choices={certificates.map((secret) => ({ value: secret.id, label: secretLabel(secret) }))}
      />
      {certificates.length > 1 && (
        <FurtherCertificates form={form} path={`${prefix}sni_secret_id`} certificates={certificates} />
      )}
    </>
  );
}

interface FurtherCertificatesProps {
  readonly form: Form;
  readonly path: string;
  readonly certificates: readonly Secret[];
}

function FurtherCertificates({ form, path, certificates }: FurtherCertificatesProps) {
  const id = useId();
  const chosen = (form.get(path) as readonly string[] | undefined) ?? [];
  useEffect(() => form.register(path));
  const toggle = (secret: string, isOn: boolean) =>
    form.set(path, isOn ? [...chosen, secret] : chosen.filter((each) => each !== secret));
  return (
    <fieldset className="field" aria-describedby={`${id}-help ${id}-error`}>
      <legend>
        Further certificates <span className="optional">(optional)</span>
      </legend>
      {certificates.map((secret) => (
        <label key={secret.id} className="row nowrap">
          <input
            type="checkbox"
            checked={chosen.includes(secret.id)}
            onChange={(event) => toggle(secret.id, event.target.checked)}
          />
          <bdi>{secretLabel(secret)}</bdi>
        </label>
      ))}
      <p id={`${id}-help`} className="help">
        Selected by the server name that the client asks for.
      </p>
      <FieldErrors id={`${id}-error`} errors={form.errorsAt(path)} />
    </fieldset>
  );
}
