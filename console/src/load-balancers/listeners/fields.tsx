import { Field } from '../../ui/form/field.tsx';
import { RowsField } from '../../ui/form/rows-field.tsx';
import type { Form } from '../../ui/form/use-form.ts';
import { Timeouts } from '../timeouts.tsx';
import { AllowedNetworks } from './allowed-networks.tsx';
import { CertificateFields } from './certificate-fields.tsx';
import { hasCertificate, hasHeaders, hasUsers } from './protocols.ts';

interface ListenerFieldsProps {
  readonly form: Form;
  /** Of the paths in the request: empty, or `listeners.0.`. */
  readonly prefix?: string;
  /** Of an existing listener, which cannot change. */
  readonly protocol?: string;
}

/** The settings of a listener. */
export function ListenerFields({ form, prefix = '', protocol: fixed }: ListenerFieldsProps) {
  const protocol = fixed ?? form.get(`${prefix}protocol`);
  return (
    <>
      <Field form={form} path={`${prefix}name`} label="Listener name" help="" />
      {fixed === undefined && (
        <div className="field-row">
          <Field form={form} path={`${prefix}protocol`} label="Listener protocol" help="" />
          <Field form={form} path={`${prefix}protocol_port`} label="Listener port" help="" />
        </div>
      )}
      {hasCertificate(protocol) && (
        <CertificateFields form={form} prefix={prefix} isRequired={protocol === 'TERMINATED_HTTPS'} />
      )}
      {fixed === undefined && hasHeaders(protocol) && (
        <Field
          form={form}
          path={`${prefix}insert_x_forwarded`}
          label="Send X-Forwarded headers to the members"
          help="X-Forwarded-For, X-Forwarded-Port and X-Forwarded-Proto."
        />
      )}
      {fixed !== undefined && <Field form={form} path="admin_state_up" label="Accept connections" help="" />}
      <details className="more">
        <summary>Access, limits and timeouts</summary>
        <div className="form">
          <AllowedNetworks form={form} path={`${prefix}allowed_cidrs`} />
          <Field form={form} path={`${prefix}connection_limit`} label="Connection limit" />
          {hasUsers(protocol) && (
            <RowsField
              form={form}
              path={`${prefix}user_list`}
              label="Basic authentication"
              help="Clients need one of these names and its password, at most 3. Hash a password with mkpasswd -m sha-512."
              columns={[
                { key: 'username', label: 'User', placeholder: 'name' },
                { key: 'encrypted_password', label: 'Password hash', placeholder: '$6$…' },
              ]}
            />
          )}
          <Timeouts
            form={form}
            prefix={prefix}
            defaults="Without a timeout: 50,000 ms for data and 5,000 ms to connect. Timeouts of the pool take precedence."
          />
        </div>
      </details>
    </>
  );
}
