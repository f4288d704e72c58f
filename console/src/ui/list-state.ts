import { useNavigate, useSearch } from '@tanstack/react-router';

export const PAGE_SIZE = 50;

/** Filter, order and page of a list, in the URL. */
export interface ListState {
  readonly search: string;
  /** `name` or `-name`: by that column, ascending or descending. */
  readonly sort: string;
  /** From 1. */
  readonly page: number;
  readonly get: (name: string) => string;
  /** Sets parameters of the URL; an empty value removes one. Any change but that of the page returns to the first page. */
  readonly set: (changes: Readonly<Record<string, string>>) => void;
}

export function useListState(): ListState {
  const search = useSearch({ strict: false }) as Record<string, string | undefined>;
  const navigate = useNavigate();
  return {
    search: search['q'] ?? '',
    sort: search['sort'] ?? '',
    page: Math.max(1, Math.trunc(Number(search['page'])) || 1),
    get: (name) => search[name] ?? '',
    set: (changes) => {
      // `before` is the page of a list without page numbers.
      const next = (previous: Record<string, string>) => ({ ...previous, page: '', before: '', ...changes });
      void navigate({ to: '.', search: next, replace: true, resetScroll: false } as never);
    },
  };
}

interface Sortable<T> {
  readonly key: string;
  readonly sortBy?: (row: T) => string | number | null | undefined;
}

const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: 'base' });

/** Rows in the order of the list's state; unsorted rows keep the order of the API. Empty values come last. */
export function sortRows<T>(rows: readonly T[], columns: readonly Sortable<T>[], sort: string): readonly T[] {
  const isDescending = sort.startsWith('-');
  const column = columns.find(({ key }) => key === sort.replace(/^-/, ''));
  if (!column?.sortBy) return rows;
  const direction = isDescending ? -1 : 1;
  return rows.toSorted((a, b) => {
    const [x, y] = [column.sortBy!(a) ?? null, column.sortBy!(b) ?? null];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    return (
      direction * (typeof x === 'number' && typeof y === 'number' ? x - y : collator.compare(String(x), String(y)))
    );
  });
}
