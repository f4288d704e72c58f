import { type RefObject, useLayoutEffect, useRef } from 'react';
import { focusContent } from './focus-content.ts';

const CONTROL = 'a, button';

/**
 * Keeps the focus in a table when the focused control disappears with its row or is replaced: the same cell of the row that is now
 * in its place gets it, or the content of the page if the table disappears. The browser would reset it to the document.
 */
export function useTableFocus(): RefObject<HTMLTableElement | null> {
  const table = useRef<HTMLTableElement>(null);
  const focused = useRef<{ readonly control: Element; readonly row: number; readonly column: number } | null>(null);
  useLayoutEffect(() => {
    const element = table.current!;
    // React does not report the focus that a closed dialog returns.
    element.addEventListener('focusin', ({ target }) => {
      const control = target as Element;
      const cell = control.closest('td');
      focused.current = cell && { control, row: cell.closest('tr')!.sectionRowIndex, column: cell.cellIndex };
    });
    return () => {
      if (element.contains(document.activeElement)) focusContent();
    };
  }, []);
  useLayoutEffect(() => {
    if (!focused.current || focused.current.control.isConnected) return;
    const { row, column } = focused.current;
    focused.current = null;
    if (document.activeElement !== document.body) return;
    const { rows } = table.current!.tBodies[0]!;
    const next = rows[Math.min(row, rows.length - 1)];
    const control =
      next?.cells[column]?.querySelector<HTMLElement>(CONTROL) ?? next?.querySelector<HTMLElement>(CONTROL);
    control?.focus({ preventScroll: true });
  });
  return table;
}
