import { useEffect, useId } from 'react';
import { Field, FieldErrors } from '../../ui/form/field.tsx';
import type { Form } from '../../ui/form/use-form.ts';
import { sendsRequests } from '../fitting.ts';

const NEW = { type: 'HTTP', delay: 10, timeout: 5, max_retries: 2, max_retries_down: 3 };
const TYPE_OF: Readonly<Record<string, string>> = { HTTP: 'HTTP', HTTPS: 'HTTPS', UDP: 'UDP-CONNECT' };

/** The health monitor of a pool, which may have none. */
export function MonitorFields({ form, path }: { form: Form; path: string }) {
  const id = useId();
  const isOn = form.get(path) !== undefined;
  useEffect(() => (isOn ? undefined : form.register(path)));
  const protocol = String(form.get(path.replace(/healthmonitor$/, 'protocol')));
  const at = (name: string) => `${path}.${name}`;
  return (
    <fieldset className="group">
      <legend>Health monitor</legend>
      <div className="field check">
        <input
          id={id}
          type="checkbox"
          checked={isOn}
          onChange={({ target }) =>
            form.set(path, target.checked ? { ...NEW, type: TYPE_OF[protocol] ?? 'TCP' } : undefined)
          }
        />
        <label htmlFor={id}>Check the members, and send traffic to healthy ones only</label>
      </div>
      {isOn && (
        <>
          <div className="field-row">
            <Field form={form} path={at('type')} label="Check" help="" />
            <Field form={form} path={at('delay')} label="Interval (s)" help="" />
            <Field form={form} path={at('timeout')} label="Time limit (s)" help="Less than the interval." />
          </div>
          <div className="field-row">
            <Field form={form} path={at('max_retries')} label="Successes until up" help="" />
            <Field form={form} path={at('max_retries_down')} label="Failures until down" help="" />
          </div>
          {sendsRequests(form.get(at('type'))) && <RequestFields form={form} at={at} />}
        </>
      )}
      <FieldErrors id={`${id}-error`} errors={isOn ? [] : form.errorsAt(path)} />
    </fieldset>
  );
}

function RequestFields({ form, at }: { form: Form; at: (name: string) => string }) {
  return (
    <>
      <div className="field-row">
        <Field form={form} path={at('http_method')} label="Method" help="" />
        <Field form={form} path={at('url_path')} label="Path" help="" placeholder="/" />
        <Field form={form} path={at('expected_codes')} label="Statuses of a healthy member" help="" placeholder="200" />
      </div>
      <div className="field-row">
        <Field form={form} path={at('domain_name')} label="Host name" help="" />
        <Field form={form} path={at('http_version')} label="HTTP version" help="" />
      </div>
    </>
  );
}
