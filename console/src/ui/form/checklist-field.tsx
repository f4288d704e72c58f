import { useEffect, useId } from 'react';
import { FieldErrors } from './field.tsx';
import type { Form } from './use-form.ts';

interface ChecklistFieldProps<T> {
  readonly form: Form;
  readonly path: string;
  readonly label: string;
  readonly help: string;
  readonly choices: readonly { readonly value: T; readonly label: string }[];
}

/** A list of values as one checkbox for each that can be chosen, or that was chosen and has been deleted since. */
export function ChecklistField<T extends string | number>(props: ChecklistFieldProps<T>) {
  const { form, path, label, help, choices } = props;
  const id = useId();
  const chosen = (form.get(path) as readonly T[] | undefined) ?? [];
  useEffect(() => form.register(path));
  const others = chosen.filter((value) => choices.every((choice) => choice.value !== value));
  const shown = [...choices, ...others.map((value) => ({ value, label: String(value) }))];
  const toggle = (value: T, isOn: boolean) =>
    form.set(path, isOn ? [...chosen, value] : chosen.filter((each) => each !== value));
  return (
    <fieldset className="field" aria-describedby={`${id}-help ${id}-error`}>
      <legend>
        {label} <span className="optional">(optional)</span>
      </legend>
      {shown.map(({ value, label: text }) => (
        <label key={value} className="row nowrap">
          <input
            type="checkbox"
            checked={chosen.includes(value)}
            aria-invalid={form.errorsAt(`${path}.${chosen.indexOf(value)}`).length > 0}
            onChange={({ target }) => toggle(value, target.checked)}
          />
          <bdi>{text}</bdi>
        </label>
      ))}
      <p id={`${id}-help`} className="help">
        {help}
      </p>
      <FieldErrors id={`${id}-error`} errors={form.errorsAt(path)} />
    </fieldset>
  );
}
