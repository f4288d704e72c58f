import { useEffect, useRef, useState } from 'react';
import type { RefObject } from 'react';

interface RowFocus<T> {
  /** Contains the rows, and after them the button that adds one. */
  readonly list: RefObject<T | null>;
  /** To be called with each addition. */
  readonly added: () => void;
  /** To be called with each removal. */
  readonly removed: (index: number) => void;
}

const ROWS = ':is(.rows-item, tbody tr)';
/** Rows that have rows themselves. */
export const FIELDSETS = ':scope > fieldset';

/**
 * Keeps the focus in a list of rows: an added row gets it in its first control, and after a removal the button that removes the
 * next row has it, or the one that adds a row. The last button of a row removes it.
 */
export function useRowFocus<T extends HTMLElement = HTMLDivElement>(selector = ROWS): RowFocus<T> {
  const list = useRef<T>(null);
  const [change, setChange] = useState<{ readonly removed: number | null } | null>(null);
  useEffect(() => {
    if (!change) return;
    const rows = [...list.current!.querySelectorAll<HTMLElement>(selector)];
    if (change.removed === null) rows.at(-1)?.querySelector<HTMLElement>('input, select')?.focus();
    else
      [...(rows[Math.min(change.removed, rows.length - 1)] ?? list.current!).querySelectorAll('button')]
        .at(-1)
        ?.focus();
  }, [change]);
  return { list, added: () => setChange({ removed: null }), removed: (index) => setChange({ removed: index }) };
}
