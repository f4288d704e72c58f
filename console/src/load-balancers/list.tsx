import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ListPage } from '../ui/list-page.tsx';
import { useScope } from '../ui/scope.tsx';
import type { Scope } from '../ui/scope.tsx';
import { StatusBadge } from '../ui/status.tsx';
import type { Column } from '../ui/table.tsx';
import { Ago, parseDate } from '../ui/time.tsx';
import { loadBalancersQuery } from './data.ts';
import type { LoadBalancer } from './data.ts';
import { addressesOf } from './values.ts';

const columnsOf = (scope: Scope): Column<LoadBalancer>[] => [
  {
    key: 'name',
    title: 'Name',
    kind: 'name',
    sortBy: (balancer) => balancer.name,
    render: (balancer) => (
      <Link to={scope.path('load-balancers', balancer.id)}>
        <bdi>{balancer.name}</bdi>
      </Link>
    ),
  },
  {
    key: 'operating',
    title: 'Health',
    sortBy: (balancer) => balancer.operating_status,
    render: (balancer) => <StatusBadge status={balancer.operating_status} />,
  },
  {
    key: 'provisioning',
    title: 'Status',
    sortBy: (balancer) => balancer.provisioning_status,
    render: (balancer) => <StatusBadge status={balancer.provisioning_status} />,
  },
  {
    key: 'address',
    title: 'Address',
    sortBy: (balancer) => balancer.vip_address,
    render: (balancer) => <code>{addressesOf(balancer).join(', ')}</code>,
  },
  {
    key: 'listeners',
    title: 'Listeners',
    kind: 'number',
    sortBy: (balancer) => balancer.listeners.length,
    render: (balancer) => balancer.listeners.length,
  },
  { key: 'flavor', title: 'Flavor', sortBy: flavorOf, render: flavorOf },
  {
    key: 'created',
    title: 'Created',
    sortBy: (balancer) => parseDate(balancer.created_at).getTime(),
    render: (balancer) => <Ago at={balancer.created_at} />,
  },
];

function flavorOf({ flavor }: LoadBalancer): string | null {
  return flavor?.flavor_name ?? null;
}

export function LoadBalancerList() {
  const scope = useScope();
  return (
    <ListPage
      title="Load balancers"
      description="Addresses that distribute connections and requests over members."
      driverKind="load balancers"
      query={useQuery(loadBalancersQuery(scope))}
      columns={columnsOf(scope)}
      rowKey={(balancer) => balancer.id}
      textOf={(balancer) =>
        [
          balancer.name,
          balancer.id,
          ...addressesOf(balancer),
          ...balancer.tags_v2.map(({ key, value }) => `${key}=${value}`),
        ].join(' ')
      }
      filters={[
        { name: 'health', label: 'Health', valueOf: (balancer) => balancer.operating_status },
        { name: 'status', label: 'Status', valueOf: (balancer) => balancer.provisioning_status },
      ]}
      create={{ label: 'Create load balancer', to: scope.path('load-balancers', 'new') }}
      empty={{
        title: 'No load balancers yet',
        text: 'A load balancer has an address and listeners, which pass traffic to pools of members.',
      }}
    />
  );
}
