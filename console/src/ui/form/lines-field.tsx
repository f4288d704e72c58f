import { useEffect, useId, useState } from 'react';
import { FieldErrors } from './field.tsx';
import type { Form } from './use-form.ts';

interface LinesFieldProps {
  readonly form: Form;
  readonly path: string;
  readonly label: string;
  readonly help: string;
  readonly placeholder?: string;
}

/** A list of texts, one a line. */
export function LinesField({ form, path, label, help, placeholder }: LinesFieldProps) {
  const id = useId();
  const errors = form.errorsAt(path);
  // The text is kept beside the list, which has no empty lines.
  const [text, setText] = useState(() => ((form.get(path) as readonly string[] | undefined) ?? []).join('\n'));
  useEffect(() => form.register(path));
  function change(next: string): void {
    setText(next);
    const lines = next.split('\n').map((line) => line.trim());
    form.set(
      path,
      lines.filter((line) => line !== ''),
    );
  }
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <textarea
        id={id}
        dir="auto"
        spellCheck={false}
        aria-describedby={`${id}-help ${id}-error`}
        aria-invalid={errors.length > 0}
        placeholder={placeholder}
        value={text}
        onChange={(event) => change(event.target.value)}
      />
      <p id={`${id}-help`} className="help">
        {help}
      </p>
      <FieldErrors id={`${id}-error`} errors={errors} />
    </div>
  );
}
