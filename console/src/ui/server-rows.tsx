import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useListState } from './list-state.ts';
import { Pager } from './pager.tsx';
import { NotLoaded, Skeleton } from './states.tsx';
import { type Column, Table } from './table.tsx';

interface ServerRowsProps<T> {
  readonly label: string;
  readonly query: UseQueryResult<{ readonly count: number; readonly results: readonly T[] }>;
  readonly columns: readonly Column<T>[];
  /** Shown when no row matches. */
  readonly empty: ReactNode;
}

/** One page of a list that is too long for the browser: the server filters and sorts it, with the state in the URL. */
export function ServerRows<T extends { readonly id: string }>({ label, query, columns, empty }: ServerRowsProps<T>) {
  const state = useListState();
  if (!query.data) return <NotLoaded query={query} rows={6} />;
  const { count, results } = query.data;
  const isBusy = query.isPlaceholderData;
  if (count === 0) return isBusy ? <Skeleton rows={6} /> : empty;
  return (
    <>
      <Table
        label={label}
        columns={columns}
        rows={results}
        rowKey={(row) => row.id}
        sort={state.sort}
        setSort={(sort) => state.set({ sort })}
        isBusy={isBusy}
      />
      <Pager page={state.page} count={count} setPage={(page) => state.set({ page: String(page) })} />
    </>
  );
}
