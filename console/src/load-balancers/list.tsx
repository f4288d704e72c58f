import { useQuery } from '@tanstack/react-query';
import { createdColumn, nameColumn, tagsText } from '../ui/columns.tsx';
import { ListPage } from '../ui/list-page.tsx';
import { type Scope, useScope } from '../ui/scope.tsx';
import { StatusBadge } from '../ui/status.tsx';
import type { Column } from '../ui/table.tsx';
import { type LoadBalancer, loadBalancersQuery } from './data.ts';
import { addressesOf } from './values.ts';

const columnsOf = (scope: Scope): Column<LoadBalancer>[] => [
  nameColumn((balancer) => scope.path('load-balancers', balancer.id)),
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
  { key: 'listeners', title: 'Listeners', kind: 'number', sortBy: (balancer) => balancer.listeners.length },
  { key: 'flavor', title: 'Flavor', sortBy: flavorOf },
  createdColumn,
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
        [balancer.name, balancer.id, ...addressesOf(balancer), tagsText(balancer.tags_v2)].join(' ')
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
