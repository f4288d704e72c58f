import { useEffect, useId } from 'react';
import { FieldErrors } from './field.tsx';
import type { Form } from './use-form.ts';

interface DateFieldProps {
  readonly form: Form;
  readonly path: string;
  /** Says that the time is UTC. */
  readonly label: string;
  readonly help: string;
}

/** A date and time in UTC. */
export function DateField({ form, path, label, help }: DateFieldProps) {
  const id = useId();
  const errors = form.errorsAt(path);
  const value = form.get(path);
  useEffect(() => form.register(path));
  return (
    <div className="field">
      <label htmlFor={id}>
        {label} {!form.isEdit && <span className="optional">(optional)</span>}
      </label>
      <input
        id={id}
        type="datetime-local"
        aria-describedby={`${id}-help ${id}-error`}
        aria-invalid={errors.length > 0}
        value={typeof value === 'string' ? value.replace(/:00Z$/, '') : ''}
        onChange={({ target }) => form.set(path, target.value === '' ? undefined : `${target.value}:00Z`)}
      />
      <p id={`${id}-help`} className="help">
        {help}
      </p>
      <FieldErrors id={`${id}-error`} errors={errors} />
    </div>
  );
}
