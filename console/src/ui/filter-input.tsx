import { type ComponentProps, useState } from 'react';
import type { ListState } from './list-state.ts';

interface FilterInputProps extends Omit<ComponentProps<'input'>, 'name' | 'value' | 'onChange' | 'onBlur'> {
  readonly state: ListState;
  /** Name of the parameter in the URL. */
  readonly name: string;
}

/**
 * A field whose text is a parameter of the URL. It keeps its own text while it has the focus, because the URL is updated in a
 * transition, which can lag behind typing.
 */
export function FilterInput({ state, name, ...attributes }: FilterInputProps) {
  const [typed, setTyped] = useState<string | null>(null);
  return (
    <input
      spellCheck={false}
      {...attributes}
      value={typed ?? state.get(name)}
      onChange={({ target }) => {
        setTyped(target.value);
        state.set({ [name]: target.value });
      }}
      onBlur={() => setTyped(null)}
    />
  );
}
