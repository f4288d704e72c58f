import { useEffect, useId, useState } from 'react';
import { FieldErrors } from './field.tsx';
import type { Form } from './use-form.ts';

interface DateFieldProps {
  readonly form: Form;
  readonly path: string;
  readonly label: string;
  readonly help: string;
}

const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** A date and time. The control has the time zone of the browser, like all times of the console; the form has UTC. */
export function DateField({ form, path, label, help }: DateFieldProps) {
  const id = useId();
  const errors = form.errorsAt(path);
  const value = form.get(path);
  // Kept as it is typed: a year that is not complete may have no exact counterpart in UTC.
  const [text, setText] = useState(() => (typeof value === 'string' ? toLocal(value) : ''));
  useEffect(() => form.register(path));
  return (
    <div className="field">
      <label htmlFor={id}>
        {label} {!form.isEdit && <span className="optional">(optional)</span>}
      </label>
      <input
        id={id}
        type="datetime-local"
        max="9999-12-31T23:59"
        aria-describedby={`${id}-help ${id}-error`}
        aria-invalid={errors.length > 0}
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          form.set(path, toUtc(target.value));
        }}
      />
      <p id={`${id}-help`} className="help">
        In your time zone ({ZONE}). {help}
      </p>
      <FieldErrors id={`${id}-error`} errors={errors} />
    </div>
  );
}

/** `2030-01-01T00:00:00Z` as the value of the control. */
function toLocal(utc: string): string {
  const date = new Date(utc);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function toUtc(local: string): string | undefined {
  const date = new Date(local);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString().replace('.000Z', 'Z');
}
