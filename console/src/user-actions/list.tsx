import { Link, Outlet } from '@tanstack/react-router';
import { FilterInput } from '../ui/filter-input.tsx';
import { FilterSelect } from '../ui/filter-select.tsx';
import { ServerRows } from '../ui/server-rows.tsx';
import { type ListState, useListState } from '../ui/list-state.ts';
import { usePageActions } from '../ui/page-actions.ts';
import { keepSearch, PageHead } from '../ui/page-head.tsx';
import { type Scope, useScope } from '../ui/scope.tsx';
import { EmptyState } from '../ui/states.tsx';
import type { Column } from '../ui/table.tsx';
import { FullDate } from '../ui/time.tsx';
import schema from 'schema:UserAction';
import { type UserAction, useUserActions } from './data.ts';
import { Subscription } from './subscription.tsx';

/** The changes of the client in the format of the cloud API, and the subscription that sends them. */
export function UserActions() {
  const scope = useScope();
  usePageActions([
    { title: 'Subscribe to user actions', to: scope.path('user-actions', 'subscribe') },
    { title: 'Unsubscribe from user actions', to: scope.path('user-actions', 'unsubscribe') },
  ]);
  return (
    <>
      <PageHead title="User actions">
        <p>Changes by the tokens of the client. A subscription sends each of them to a URL.</p>
      </PageHead>
      <div className="stack">
        <Subscription />
        <Actions />
      </div>
      <Outlet />
    </>
  );
}

const isFiltered = (state: ListState) => ['q', 'type', 'group', 'page'].some((name) => state.get(name) !== '');

function Actions() {
  const scope = useScope();
  const state = useListState();
  const query = useUserActions();
  return (
    <section className="card" aria-label="User actions">
      <Tools state={state} />
      <ServerRows
        label="Actions of the client"
        query={query}
        columns={columnsOf(scope)}
        empty={
          <EmptyState title={isFiltered(state) ? 'No action matches the filter' : 'No actions yet'}>
            Changes appear here.
          </EmptyState>
        }
      />
    </section>
  );
}

const columnsOf = (scope: Scope): Column<UserAction>[] => [
  {
    key: 'action',
    title: 'Action',
    kind: 'name',
    render: (action) => (
      <Link to={scope.path('user-actions', action.id)} search={keepSearch} resetScroll={false}>
        {`${action.action_type} ${action.api_group}`.replaceAll('_', ' ')}
      </Link>
    ),
  },
  {
    key: 'at',
    title: 'When',
    sortBy: (action) => action.timestamp,
    render: (action) => <FullDate at={action.timestamp} />,
  },
  {
    key: 'resources',
    title: 'Resources',
    kind: 'wrap',
    render: ({ resources }) => <bdi>{resourcesText(resources)}</bdi>,
  },
  { key: 'token', title: 'Token', kind: 'number', render: ({ token_id }) => token_id ?? 'command' },
  { key: 'sent', title: 'Delivered', render: ({ acknowledged }) => (acknowledged ? 'yes' : 'no') },
];

const SHORT_ID = 8;

/** The names of the resources; the beginning of an ID if none has a name. */
function resourcesText(resources: UserAction['resources']): string {
  const names = resources.flatMap(({ search_field: name }) => name ?? []);
  if (names.length > 0) return names.join(', ');
  return resources.map(({ resource_id: id }) => id.slice(0, SHORT_ID)).join(', ');
}

const optionsOf = (field: string) => (schema.properties?.[field]?.enum ?? []) as readonly string[];

function Tools({ state }: { state: ListState }) {
  return (
    <div className="list-tools" role="search">
      <FilterInput
        state={state}
        name="q"
        type="search"
        aria-label="Name of the resource"
        placeholder="Name of the resource"
      />
      <FilterSelect state={state} name="type" label="Type" options={optionsOf('action_type')} />
      <FilterSelect state={state} name="group" label="Group" options={optionsOf('api_group')} />
    </div>
  );
}
