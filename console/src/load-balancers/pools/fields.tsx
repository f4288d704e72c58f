import { useQuery } from '@tanstack/react-query';
import { secretsQuery } from '../../secrets/data.ts';
import { Field } from '../../ui/form/field.tsx';
import type { Form } from '../../ui/form/use-form.ts';
import { useScope } from '../../ui/scope.tsx';
import { hasTls } from '../fitting.ts';
import { secretLabel } from '../listeners/certificate-fields.tsx';
import { poolProtocols } from '../listeners/protocols.ts';
import { Timeouts } from '../timeouts.tsx';
import { MonitorFields } from './monitor-fields.tsx';
import { PersistenceFields } from './persistence-fields.tsx';

const ALGORITHMS = [
  { value: 'ROUND_ROBIN', label: 'Round robin: the next member' },
  { value: 'LEAST_CONNECTIONS', label: 'Least connections' },
  { value: 'SOURCE_IP', label: 'By the address of the client' },
];

interface PoolFieldsProps {
  readonly form: Form;
  /** Of the paths in the request: empty, or `listeners.0.pools.0.`. */
  readonly prefix?: string;
  /** Protocol of the listener that uses the pool. */
  readonly listenerProtocol?: string | undefined;
}

/** The settings of a pool, without its members. */
export function PoolFields({ form, prefix = '', listenerProtocol }: PoolFieldsProps) {
  const protocols = poolProtocols(listenerProtocol);
  const protocol = form.get(`${prefix}protocol`);
  return (
    <>
      <Field form={form} path={`${prefix}name`} label="Pool name" help="" />
      <div className="field-row">
        <Field
          form={form}
          path={`${prefix}protocol`}
          label="Pool protocol"
          help=""
          choices={protocols.map((value) => ({ value, label: value }))}
        />
        <Field form={form} path={`${prefix}lb_algorithm`} label="Algorithm" help="" choices={ALGORITHMS} />
      </div>
      {form.isEdit && <Field form={form} path={`${prefix}admin_state_up`} label="Members get traffic" help="" />}
      <MonitorFields form={form} path={`${prefix}healthmonitor`} />
      <PersistenceFields form={form} path={`${prefix}session_persistence`} />
      <details className="more">
        <summary>{hasTls(protocol) ? 'TLS and timeouts' : 'Timeouts'}</summary>
        <div className="form">
          {hasTls(protocol) && <TlsFields form={form} prefix={prefix} />}
          <Timeouts
            form={form}
            prefix={prefix}
            defaults="Without a timeout, that of the listener applies, or 50,000 ms for data and 5,000 ms to connect."
          />
        </div>
      </details>
    </>
  );
}

/** How the load balancer and the members of an HTTPS pool authenticate each other. */
function TlsFields({ form, prefix }: { form: Form; prefix: string }) {
  const all = useQuery(secretsQuery(useScope())).data?.results ?? [];
  const choices = all.map((secret) => ({ value: secret.id, label: secretLabel(secret) }));
  return (
    <>
      <Field form={form} path={`${prefix}ca_secret_id`} label="CA certificates" choices={choices} />
      <Field form={form} path={`${prefix}crl_secret_id`} label="Revocation lists" choices={choices} />
      <Field form={form} path={`${prefix}secret_id`} label="Client certificate" choices={choices} />
    </>
  );
}
