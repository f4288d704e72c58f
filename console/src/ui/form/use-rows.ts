import { type RefObject, useEffect, useRef, useState } from 'react';

interface RowsOptions<T> {
  readonly rows: readonly T[];
  readonly set: (rows: readonly T[]) => void;
  readonly newRow: T;
  /** Selects the rows below `list`. */
  readonly selector?: string;
}

interface EditedRows<E> {
  /** Contains the rows, and after them the button that adds one. */
  readonly list: RefObject<E | null>;
  readonly add: () => void;
  readonly remove: (index: number) => void;
}

const ROWS = ':is(.rows-item, tbody tr)';
/** Rows that have rows themselves. */
export const FIELDSETS = ':scope > fieldset';

/**
 * Adds and removes rows, and keeps the focus in their list: an added row gets it in its first control, and after a removal the
 * button that removes the next row has it, or the one that adds a row. The last button of a row removes it.
 */
export function useRows<T, E extends HTMLElement = HTMLDivElement>(options: RowsOptions<T>): EditedRows<E> {
  const { rows, set, newRow, selector = ROWS } = options;
  const list = useRef<E>(null);
  const [change, setChange] = useState<{ readonly removed: number | null } | null>(null);
  useEffect(() => {
    if (!change) return;
    const shown = [...list.current!.querySelectorAll<HTMLElement>(selector)];
    if (change.removed === null) shown.at(-1)?.querySelector<HTMLElement>('input, select')?.focus();
    else
      [...(shown[Math.min(change.removed, shown.length - 1)] ?? list.current!).querySelectorAll('button')]
        .at(-1)
        ?.focus();
  }, [change]);
  return {
    list,
    add() {
      set([...rows, newRow]);
      setChange({ removed: null });
    },
    remove(index) {
      set(rows.filter((_, at) => at !== index));
      setChange({ removed: index });
    },
  };
}
