import pemSchema from 'schema:CreateSecret';
import otherSchema from 'schema:CreateSecretV1';
import { useRef, useState } from 'react';
import { DateField } from '../ui/form/date-field.tsx';
import { Field } from '../ui/form/field.tsx';
import { FileField } from '../ui/form/file-field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { SelectField } from '../ui/form/select-field.tsx';
import { type Form, type Values, withoutEmpty } from '../ui/form/use-form.ts';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { scopeParams, useScope } from '../ui/scope.tsx';
import { KIND } from './data.ts';

const SOURCES = {
  pem: 'Certificate, chain and key as PEM',
  pkcs12: 'PKCS#12 bundle (.p12, .pfx)',
  other: 'Another payload',
} as const;
type Source = keyof typeof SOURCES;
const EMPTY_PEM = { certificate: '', certificate_chain: '', private_key: '' };

export function CreateSecret() {
  const scope = useScope();
  const [source, setSource] = useState<Source>('pem');
  const isPem = source === 'pem';
  const form = useRequestForm({
    call: {
      operationId: isPem ? 'createSecret' : 'createSecretV1',
      method: 'POST',
      path: isPem ? '/cloud/v2/secrets/{project_id}/{region_id}' : '/cloud/v1/secrets/{project_id}/{region_id}',
      params: scopeParams(scope),
    },
    schema: isPem ? pemSchema : otherSchema,
    initial: { name: '', payload: EMPTY_PEM, secret_type: 'opaque' },
    toBody: (values) => toBody(values, source),
    queryKind: KIND,
    sent: ({ name }) => ({
      busy: `Creating secret ${String(name)}`,
      done: `Created secret ${String(name)}`,
      link: { to: scope.path('secrets'), text: 'Secrets' },
      to: scope.path('secrets'),
    }),
  });
  // A file has no text to keep.
  const pem = useRef<unknown>(EMPTY_PEM);
  function chooseSource(next: Source): void {
    if (isPem) pem.current = form.get('payload');
    setSource(next);
    form.set('payload', next === 'pem' ? pem.current : undefined);
  }
  return (
    <FormDialog title="Create secret" form={form} submitLabel="Create secret">
      <Field form={form} path="name" label="Name" />
      <SelectField label="Source" value={source} set={chooseSource} texts={SOURCES} />
      {isPem ? <PemFields form={form} /> : <PayloadFields key={source} form={form} source={source} />}
      <DateField
        form={form}
        path="expiration"
        label="Usable until"
        help="From this date on, no listener or pool can start to use the secret. Set it to the end of the certificate to be warned."
      />
    </FormDialog>
  );
}

function toBody({ name, expiration, payload, secret_type, ...rest }: Values, source: Source): Values {
  const common = withoutEmpty({ name, expiration });
  // An empty chain is a value.
  if (source === 'pem') return { ...common, payload };
  const type = source === 'pkcs12' ? 'certificate' : secret_type;
  const content = { payload_content_encoding: 'base64', payload_content_type: 'application/octet-stream' };
  return withoutEmpty({ ...common, secret_type: type, payload, ...content, ...(source === 'other' ? rest : {}) });
}

function PemFields({ form }: { form: Form }) {
  return (
    <>
      <Field
        form={form}
        path="payload.certificate"
        label="Certificate"
        type="textarea"
        placeholder="-----BEGIN CERTIFICATE-----"
      />
      <Field
        form={form}
        path="payload.certificate_chain"
        label="Certificate chain"
        type="textarea"
        help="The intermediate certificates. Empty if there are none."
        placeholder="-----BEGIN CERTIFICATE-----"
      />
      <Field
        form={form}
        path="payload.private_key"
        label="Private key"
        type="textarea"
        help="In PEM and not encrypted. It is stored encrypted and never shown again."
        placeholder="-----BEGIN PRIVATE KEY-----"
      />
    </>
  );
}

function PayloadFields({ form, source }: { form: Form; source: Source }) {
  return (
    <>
      {source === 'other' && <Field form={form} path="secret_type" label="Type" />}
      <FileField
        form={form}
        path="payload"
        label={source === 'pkcs12' ? 'PKCS#12 file' : 'File'}
        help={
          source === 'pkcs12'
            ? 'Without a password: openssl pkcs12 -export -in cert.pem -inkey key.pem -certfile chain.pem -passout pass: -out bundle.p12'
            : 'For a certificate: PEM or PKCS#12 without a password. CA certificates and revocation lists are PEM.'
        }
      />
      {source === 'other' && (
        <div className="field-row">
          <Field form={form} path="algorithm" label="Algorithm" help="" />
          <Field form={form} path="bit_length" label="Key length in bits" help="" />
          <Field form={form} path="mode" label="Mode" help="" />
        </div>
      )}
    </>
  );
}
