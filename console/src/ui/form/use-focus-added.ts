import { useEffect, useRef, useState } from 'react';
import type { RefObject } from 'react';

interface FocusAdded<T> {
  /** Contains the rows. */
  readonly list: RefObject<T | null>;
  /** To be called with each addition. */
  readonly added: () => void;
}

const LAST_ROW = ':is(.rows-item:nth-last-child(2), tbody tr:last-child) :is(input, select)';

/** Moves the focus to the first control of a row that was added. */
export function useFocusAdded<T extends HTMLElement = HTMLDivElement>(): FocusAdded<T> {
  const list = useRef<T>(null);
  const [count, setCount] = useState(0);
  useEffect(() => {
    if (count > 0) list.current?.querySelector<HTMLElement>(LAST_ROW)?.focus();
  }, [count]);
  return { list, added: () => setCount(count + 1) };
}
