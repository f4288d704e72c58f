import { useEffect, useRef, useState } from 'react';
import type { ComponentProps } from 'react';
import type { ListState } from './list-state.ts';

interface FilterInputProps extends Omit<ComponentProps<'input'>, 'name' | 'value' | 'onChange' | 'ref'> {
  readonly state: ListState;
  /** Name of the parameter in the URL. */
  readonly name: string;
}

/**
 * A field whose text is a parameter of the URL. It keeps its own text, because the URL follows later: while many rows are
 * filtered, more is typed.
 */
export function FilterInput({ state, name, ...attributes }: FilterInputProps) {
  const input = useRef<HTMLInputElement>(null);
  const inUrl = state.get(name);
  const [text, setText] = useState(inUrl);
  useEffect(() => {
    // The user does not type: a link or a button has changed the URL.
    if (document.activeElement !== input.current) setText(inUrl);
  }, [inUrl]);
  return (
    <input
      spellCheck={false}
      {...attributes}
      ref={input}
      value={text}
      onChange={({ target }) => {
        setText(target.value);
        state.set({ [name]: target.value });
      }}
    />
  );
}
