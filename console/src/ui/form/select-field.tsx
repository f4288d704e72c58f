import { type ReactNode, useId } from 'react';

interface SelectFieldProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly set: (value: T) => void;
  /** The options: their texts by their values. */
  readonly texts: Readonly<Record<T, string>>;
  readonly help?: ReactNode;
}

/** A choice that is not a field of the request, such as what a volume is made from. */
export function SelectField<T extends string>({ label, value, set, texts, help }: SelectFieldProps<T>) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <select
        id={id}
        value={value}
        onChange={({ target }) => set(target.value as T)}
        aria-describedby={help ? `${id}-help` : undefined}
      >
        {Object.entries<string>(texts).map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
      {help && (
        <p id={`${id}-help`} className="help">
          {help}
        </p>
      )}
    </div>
  );
}
