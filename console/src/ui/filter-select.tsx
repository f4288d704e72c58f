import type { ListState } from './list-state.ts';

interface FilterSelectProps {
  readonly state: ListState;
  /** Name of the parameter in the URL. */
  readonly name: string;
  readonly label: string;
  /** Values of the parameter, or values with the text that is shown. */
  readonly options: readonly (string | { readonly value: string; readonly text: string })[];
}

/** One filter of a list: a value, or all. */
export function FilterSelect({ state, name, label, options }: FilterSelectProps) {
  return (
    <select aria-label={label} value={state.get(name)} onChange={(event) => state.set({ [name]: event.target.value })}>
      <option value="">{label}: all</option>
      {options
        .map((option) => (typeof option === 'string' ? { value: option, text: option } : option))
        .map(({ value, text }) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
    </select>
  );
}
