import type { KeyboardEvent, ReactNode } from 'react';
import { Icon } from './icons.tsx';
import { useTableFocus } from './table-focus.ts';

type SortBy<T> = (row: T) => string | number | null | undefined;

/** `sortBy` makes a column sortable, and is what it shows by default. */
export type Column<T> = ColumnHead &
  (
    | { readonly sortBy?: SortBy<T>; readonly render: (row: T) => ReactNode }
    | { readonly sortBy: SortBy<T>; readonly render?: undefined }
  );

interface ColumnHead {
  /** Name in the URL when the list is sorted by it. */
  readonly key: string;
  readonly title: string;
  /**
   * `name`: the link to the detail page. `clip`: another name. Both are cut at their end and need no `<bdi>`.
   * `number`: right-aligned. `wrap`: long text. `actions`: buttons.
   */
  readonly kind?: 'name' | 'clip' | 'number' | 'wrap' | 'actions';
}

interface TableProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly rowKey: (row: T) => string | number;
  readonly sort?: string;
  readonly setSort?: (sort: string) => void;
  /** The rows are those of the last filter, order or page. */
  readonly isBusy?: boolean;
  /** In place of a table without rows. */
  readonly empty?: ReactNode;
}

/** A table of at most one page of rows. Arrow keys move between the links of the rows. */
export function Table<T>({ empty, ...props }: TableProps<T>) {
  return props.rows.length === 0 && empty !== undefined ? empty : <FilledTable {...props} />;
}

function FilledTable<T>(props: Omit<TableProps<T>, 'empty'>) {
  const { label, columns, rows, rowKey, sort = '', setSort, isBusy = false } = props;
  const table = useTableFocus();
  return (
    <div className="table-wrap" role="group" aria-label={label} aria-busy={isBusy} tabIndex={0}>
      <table ref={table} aria-label={label} onKeyDown={moveBetweenRows}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.key} scope="col" className={column.kind} aria-sort={ariaSort(column.key, sort)}>
                <ColumnTitle column={column} sort={sort} setSort={setSort} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)}>
              {columns.map((column) => (
                <td key={column.key} className={column.kind} dir={isCut(column) ? 'auto' : undefined}>
                  {column.render ? column.render(row) : column.sortBy(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The browser cuts text at the end of its direction, which is that of the cell. */
const isCut = ({ kind }: ColumnHead) => kind === 'name' || kind === 'clip';

interface ColumnTitleProps<T> {
  readonly column: Column<T>;
  readonly sort: string;
  readonly setSort: ((sort: string) => void) | undefined;
}

function ColumnTitle<T>({ column, sort, setSort }: ColumnTitleProps<T>) {
  if (column.kind === 'actions') return <span className="visually-hidden">{column.title}</span>;
  if (!column.sortBy || !setSort) return column.title;
  const next = sort === column.key ? `-${column.key}` : sort === `-${column.key}` ? '' : column.key;
  return (
    <button type="button" onClick={() => setSort(next)}>
      {column.title}
      {sort.replace(/^-/, '') === column.key && <Icon name={sort.startsWith('-') ? 'down' : 'up'} />}
    </button>
  );
}

function ariaSort(key: string, sort: string): 'ascending' | 'descending' | undefined {
  if (sort === key) return 'ascending';
  return sort === `-${key}` ? 'descending' : undefined;
}

function moveBetweenRows(event: KeyboardEvent<HTMLTableElement>): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const target = event.target as HTMLElement;
  if (step === undefined || target.matches('input, select, textarea')) return;
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>('tbody td.name a')];
  const next = links[links.findIndex((link) => target.closest('tr')?.contains(link)) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}
