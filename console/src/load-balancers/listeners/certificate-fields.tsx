import { useQuery } from '@tanstack/react-query';
import { type Secret, secretsQuery } from '../../secrets/data.ts';
import { ChecklistField } from '../../ui/form/checklist-field.tsx';
import { Field } from '../../ui/form/field.tsx';
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
  const further = (form.get(`${prefix}sni_secret_id`) as readonly string[] | undefined) ?? [];
  const choices = certificates.map((secret) => ({ value: secret.id, label: secretLabel(secret) }));
  return (
    <>
      <Field
        form={form}
        path={`${prefix}secret_id`}
        isRequired={isRequired}
        label="Certificate"
        help={certificates.length === 0 ? 'This project has no certificate yet: create a secret first.' : ''}
        choices={choices}
      />
      {(certificates.length > 1 || further.length > 0) && (
        <ChecklistField
          form={form}
          path={`${prefix}sni_secret_id`}
          label="Further certificates"
          help="Selected by the server name that the client asks for."
          choices={choices}
        />
      )}
    </>
  );
}
