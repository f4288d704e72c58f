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
  const chosen = state.get(name);
  const offered = options.map((option) => (typeof option === 'string' ? { value: option, text: option } : option));
  // Of a link, or of rows that have changed since: a select without it would show that all rows are listed.
  const isUnknown = chosen !== '' && !offered.some(({ value }) => value === chosen);
  return (
    <select aria-label={label} value={chosen} onChange={(event) => state.set({ [name]: event.target.value })}>
      <option value="">{label}: all</option>
      {isUnknown && <option value={chosen}>{chosen}</option>}
      {offered.map(({ value, text }) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
}
