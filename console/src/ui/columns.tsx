/** The columns that lists of most resources have. */
import { Link } from '@tanstack/react-router';
import type { components } from '../api/openapi.d.ts';
import { StatusBadge } from './status.tsx';
import type { Column } from './table.tsx';
import { Ago, timeOf } from './time.tsx';

/** The name, as a link to the page of the row. `badgeOf`: a word beside it. */
export function nameColumn<T extends { readonly name: string }>(
  to: (row: T) => string,
  badgeOf?: (row: T) => string | false | null,
): Column<T> {
  return {
    key: 'name',
    title: 'Name',
    kind: 'name',
    sortBy: ({ name }) => name,
    render: (row) => (
      <>
        <Link to={to(row)}>{row.name}</Link> {badgeOf?.(row) && <span className="badge">{badgeOf(row)}</span>}
      </>
    ),
  };
}

export const statusColumn: Column<{ readonly status: string }> = {
  key: 'status',
  title: 'Status',
  sortBy: ({ status }) => status,
  render: ({ status }) => <StatusBadge status={status} />,
};

export const createdColumn: Column<{ readonly created_at: string }> = {
  key: 'created',
  title: 'Created',
  sortBy: ({ created_at }) => timeOf(created_at),
  render: ({ created_at }) => <Ago at={created_at} />,
};

/** For the filter of a list: `env=test team=web`. */
export function tagsText(tags: readonly components['schemas']['Tag'][]): string {
  return tags.map(({ key, value }) => `${key}=${value}`).join(' ');
}
