import { useQuery } from '@tanstack/react-query';
import { createdColumn, nameColumn, statusColumn } from '../ui/columns.tsx';
import { ListPage } from '../ui/list-page.tsx';
import { type Scope, useScope } from '../ui/scope.tsx';
import type { Column } from '../ui/table.tsx';
import { FullDate, timeOf } from '../ui/time.tsx';
import { type ApiKey, apiKeysQuery } from './data.ts';

const SHOWN_CONTAINERS = 3;

const columnsOf = (scope: Scope): Column<ApiKey>[] => [
  nameColumn((key) => scope.path('api-keys', key.name)),
  statusColumn,
  {
    key: 'containers',
    title: 'Opens',
    kind: 'wrap',
    sortBy: (key) => key.containers.length,
    render: ({ containers }) =>
      containers.length === 0 ? (
        <span className="muted">nothing</span>
      ) : (
        <bdi>
          {containers
            .slice(0, SHOWN_CONTAINERS)
            .map(({ namespace, name }) => `${namespace}/${name}`)
            .join(', ')}
          {containers.length > SHOWN_CONTAINERS && ` and ${containers.length - SHOWN_CONTAINERS} more`}
        </bdi>
      ),
  },
  {
    key: 'expires',
    title: 'Expires',
    sortBy: (key) => timeOf(key.expire),
    render: (key) => (key.expire === null ? <span className="muted">never</span> : <FullDate at={key.expire} />),
  },
  createdColumn,
];

export function ApiKeyList() {
  const scope = useScope();
  return (
    <ListPage
      title="API keys"
      description="Keys that clients send to reach containers."
      query={useQuery(apiKeysQuery(scope))}
      columns={columnsOf(scope)}
      rowKey={(key) => key.name}
      textOf={(key) =>
        [key.name, key.description, ...key.containers.map(({ namespace, name }) => `${namespace}/${name}`)].join(' ')
      }
      filters={[{ name: 'status', label: 'Status', valueOf: (key) => key.status }]}
      create={{ label: 'Create API key', to: scope.path('api-keys', '~new') }}
      empty={{ title: 'No API keys yet', text: 'An API key opens containers to the clients that send it.' }}
    />
  );
}
