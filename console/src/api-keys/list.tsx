import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ListPage } from '../ui/list-page.tsx';
import { useScope } from '../ui/scope.tsx';
import type { Scope } from '../ui/scope.tsx';
import { StatusBadge } from '../ui/status.tsx';
import type { Column } from '../ui/table.tsx';
import { Ago, FullDate, parseDate } from '../ui/time.tsx';
import { apiKeysQuery } from './data.ts';
import type { ApiKey } from './data.ts';

const SHOWN_CONTAINERS = 3;

const columnsOf = (scope: Scope): Column<ApiKey>[] => [
  {
    key: 'name',
    title: 'Name',
    kind: 'name',
    sortBy: (key) => key.name,
    render: (key) => <Link to={scope.path('api-keys', key.name)}>{key.name}</Link>,
  },
  {
    key: 'status',
    title: 'Status',
    sortBy: (key) => key.status,
    render: (key) => <StatusBadge status={key.status} />,
  },
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
    sortBy: (key) => (key.expire === null ? null : parseDate(key.expire).getTime()),
    render: (key) => (key.expire === null ? <span className="muted">never</span> : <FullDate at={key.expire} />),
  },
  {
    key: 'created',
    title: 'Created',
    sortBy: (key) => parseDate(key.created_at).getTime(),
    render: (key) => <Ago at={key.created_at} />,
  },
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
