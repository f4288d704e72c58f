import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ListPage } from '../ui/list-page.tsx';
import { useScope } from '../ui/scope.tsx';
import type { Scope } from '../ui/scope.tsx';
import type { Column } from '../ui/table.tsx';
import { Ago, parseDate } from '../ui/time.tsx';
import { networksQuery } from './data.ts';
import type { Network } from './data.ts';

const columnsOf = (scope: Scope): Column<Network>[] => [
  {
    key: 'name',
    title: 'Name',
    kind: 'name',
    sortBy: (network) => network.name,
    render: (network) => (
      <>
        <Link to={scope.path('networks', network.id)}>
          <bdi>{network.name}</bdi>
        </Link>{' '}
        {network.default && <span className="badge">project default</span>}
      </>
    ),
  },
  { key: 'type', title: 'Type', sortBy: (network) => network.type, render: (network) => network.type },
  {
    key: 'subnets',
    title: 'Subnets',
    kind: 'number',
    sortBy: (network) => network.subnets.length,
    render: (network) => network.subnets.length,
  },
  { key: 'mtu', title: 'MTU', kind: 'number', sortBy: (network) => network.mtu, render: (network) => network.mtu },
  {
    key: 'created',
    title: 'Created',
    sortBy: (network) => parseDate(network.created_at).getTime(),
    render: (network) => <Ago at={network.created_at} />,
  },
];

export function NetworkList() {
  const scope = useScope();
  return (
    <ListPage
      title="Networks"
      description="Networks and their subnets give file shares and load balancers their addresses."
      query={useQuery(networksQuery(scope))}
      columns={columnsOf(scope)}
      rowKey={(network) => network.id}
      textOf={({ name, id, tags }) => [name, id, ...tags.map(({ key, value }) => `${key}=${value}`)].join(' ')}
      filters={[{ name: 'type', label: 'Type', valueOf: (network) => network.type }]}
      create={{ label: 'Create network', to: scope.path('networks', 'new') }}
      empty={{ title: 'No networks yet', text: 'A network holds subnets, from which resources get their addresses.' }}
    />
  );
}
