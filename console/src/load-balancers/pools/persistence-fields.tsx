import { useEffect, useId } from 'react';
import { Field, FieldErrors } from '../../ui/form/field.tsx';
import type { Form } from '../../ui/form/use-form.ts';
import { hasPersistenceTime } from '../fitting.ts';

const TYPES = {
  SOURCE_IP: 'by the address of the client',
  HTTP_COOKIE: 'by a cookie of the load balancer',
  APP_COOKIE: 'by a cookie of the members',
} as const;

/** Session persistence: how a client stays on the same member. */
export function PersistenceFields({ form, path }: { form: Form; path: string }) {
  const id = useId();
  const type = form.get(`${path}.type`);
  const protocol = form.get(path.replace(/session_persistence$/, 'protocol'));
  const errors = [...form.errorsAt(`${path}.type`), ...(type === undefined ? form.errorsAt(path) : [])];
  useEffect(() => form.register(type === undefined ? path : `${path}.type`));
  return (
    <>
      <div className="field">
        <label htmlFor={id}>Session persistence</label>
        <select
          id={id}
          aria-describedby={`${id}-error`}
          aria-invalid={errors.length > 0}
          value={typeof type === 'string' ? type : ''}
          onChange={({ target }) => form.set(path, target.value === '' ? undefined : { type: target.value })}
        >
          <option value="">off</option>
          {Object.entries(TYPES).map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
        <FieldErrors id={`${id}-error`} errors={errors} />
      </div>
      {(type === 'APP_COOKIE' || type === 'HTTP_COOKIE') && (
        <Field
          form={form}
          path={`${path}.cookie_name`}
          isRequired={type === 'APP_COOKIE'}
          label="Name of the cookie"
          help={type === 'APP_COOKIE' ? 'The members set it.' : 'By default, the load balancer chooses a name.'}
        />
      )}
      {hasPersistenceTime(protocol, type) && (
        <div className="field-row">
          <Field form={form} path={`${path}.persistence_timeout`} label="Timeout (s)" help="" />
          <Field
            form={form}
            path={`${path}.persistence_granularity`}
            label="Netmask"
            help=""
            placeholder="255.255.255.0"
          />
        </div>
      )}
    </>
  );
}
