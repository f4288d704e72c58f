import { Outlet } from '@tanstack/react-router';
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useReadOnlyReason } from '../api/session.ts';
import { FilterInput } from './filter-input.tsx';
import { FilterSelect } from './filter-select.tsx';
import { Icon } from './icons.tsx';
import { type ListState, PAGE_SIZE, sortRows, useListState } from './list-state.ts';
import { formatNumber } from './numbers.ts';
import { ActionLink, PageHead } from './page-head.tsx';
import { Pager } from './pager.tsx';
import { EmptyState, NotLoaded } from './states.tsx';
import { SimulatedBadge } from './status.tsx';
import { type Column, Table } from './table.tsx';

interface Filter<T> {
  /** Name of the parameter in the URL. */
  readonly name: string;
  readonly label: string;
  readonly valueOf: (row: T) => string;
}

interface ListPageProps<T> {
  readonly title: string;
  readonly description?: ReactNode;
  /** Kind in `GET /healthz/drivers`. */
  readonly driverKind?: string;
  readonly query: UseQueryResult<{ readonly count: number; readonly results: readonly T[] }>;
  readonly columns: readonly Column<T>[];
  readonly rowKey: (row: T) => string | number;
  /** The text that the filter field searches. */
  readonly textOf: (row: T) => string;
  readonly filters?: readonly Filter<T>[];
  /** `disabledReason`: of a role that may change other resources, but not create this one. */
  readonly create?: { readonly label: string; readonly to: string; readonly disabledReason?: string | null };
  readonly actions?: ReactNode;
  /** Shown when the project has none: what the resource is for. */
  readonly empty: { readonly title: string; readonly text: string };
}

/**
 * A list whose rows are all in the browser: filtered, sorted and paged there, with the state in the URL. Dialogs of the list
 * (create) are child routes.
 */
export function ListPage<T>(props: ListPageProps<T>) {
  const { title, description, driverKind, create, actions } = props;
  const readOnly = useReadOnlyReason();
  return (
    <>
      <PageHead
        title={title}
        badges={driverKind && <SimulatedBadge kind={driverKind} />}
        actions={
          <>
            {actions}
            {create && (
              <ActionLink
                to={create.to}
                className="primary"
                disabledReason={readOnly ?? create.disabledReason}
                shortcut="create"
              >
                <Icon name="plus" /> {create.label}
              </ActionLink>
            )}
          </>
        }
      >
        {description && <p>{description}</p>}
      </PageHead>
      <section className="card" aria-label={title}>
        <Rows {...props} />
      </section>
      <Outlet />
    </>
  );
}

/** The filter, the table and the pager, without the head: for lists inside a detail page, too. */
export function Rows<T>(props: ListPageProps<T>) {
  const { query, filters = [], columns, empty, textOf } = props;
  const state = useListState();
  if (!query.data) return <NotLoaded query={query} rows={6} />;
  const { results: all, count } = query.data;
  if (all.length === 0) return <EmptyState title={empty.title}>{empty.text}</EmptyState>;
  const words = folded(state.search).split(/\s+/);
  const found = all.filter((row) => {
    const text = folded(textOf(row));
    return (
      words.every((word) => text.includes(word)) &&
      filters.every(({ name, valueOf }) => state.get(name) === '' || state.get(name) === valueOf(row))
    );
  });
  const sorted = sortRows(found, columns, state.sort);
  const page = Math.min(state.page, Math.max(1, Math.ceil(sorted.length / PAGE_SIZE)));
  return (
    <>
      <ListTools state={state} filters={filters} rows={all} count={found.length} total={count} />
      <Table
        label={props.title}
        columns={columns}
        rows={sorted.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE)}
        rowKey={props.rowKey}
        sort={state.sort}
        setSort={(sort) => state.set({ sort })}
        empty={
          <EmptyState title="Nothing matches the filter">
            <button type="button" className="button" onClick={() => state.set(noFilter(filters))}>
              Clear the filter
            </button>
          </EmptyState>
        }
      />
      <Pager page={page} count={sorted.length} setPage={(next) => state.set({ page: String(next) })} />
    </>
  );
}

/** Letters with accents look the same whether they are one character or two. */
const folded = (text: string) => text.normalize().toLowerCase();

function noFilter(filters: readonly { name: string }[]): Record<string, string> {
  return Object.fromEntries([['q', ''], ...filters.map(({ name }) => [name, ''])]);
}

interface ListToolsProps<T> {
  readonly state: ListState;
  readonly filters: readonly Filter<T>[];
  readonly rows: readonly T[];
  readonly count: number;
  readonly total: number;
}

function ListTools<T>({ state, filters, rows, count, total }: ListToolsProps<T>) {
  return (
    <div className="list-tools" role="search">
      <FilterInput state={state} name="q" type="search" aria-label="Filter" placeholder="Filter" />
      {filters.map(({ name, label, valueOf }) => (
        <FilterSelect
          key={name}
          state={state}
          name={name}
          label={label}
          options={[...new Set(rows.map(valueOf))].sort()}
        />
      ))}
      <span className="count" role="status">
        {count === total ? rowsText(total) : `${formatNumber(count)} of ${rowsText(total)}`}
        {rows.length < total && `; only ${formatNumber(rows.length)} are listed and filtered`}
      </span>
    </div>
  );
}

const rowsText = (count: number) => (count === 1 ? '1 row' : `${formatNumber(count)} rows`);
