import { useQuery } from '@tanstack/react-query';
import { useReadOnlyReason } from '../api/session.ts';
import { type Network, type Subnet, subnetsQuery } from '../networks/data.ts';
import { createdColumn, nameColumn } from '../ui/columns.tsx';
import { Card } from '../ui/detail-page.tsx';
import { Icon } from '../ui/icons.tsx';
import { formatNumber } from '../ui/numbers.ts';
import { ActionLink } from '../ui/page-head.tsx';
import { type Scope, useScope } from '../ui/scope.tsx';
import { EmptyState, NotLoaded } from '../ui/states.tsx';
import { type Column, Table } from '../ui/table.tsx';

export const columnsOf = (scope: Scope): Column<Subnet>[] => [
  nameColumn((subnet) => scope.path('subnets', subnet.id)),
  { key: 'cidr', title: 'Range', sortBy: (subnet) => subnet.cidr, render: (subnet) => <code>{subnet.cidr}</code> },
  { key: 'gateway', title: 'Gateway', render: (subnet) => subnet.gateway_ip && <code>{subnet.gateway_ip}</code> },
  {
    key: 'free',
    title: 'Free addresses',
    kind: 'number',
    sortBy: (subnet) => subnet.available_ips,
    render: addressesOf,
  },
  createdColumn,
];

/** Free and all addresses; a dash where the API does not count them. */
export function addressesOf({ available_ips: free, total_ips: all }: Subnet): string {
  return free === null || all === null ? '–' : `${formatNumber(free)} of ${formatNumber(all)}`;
}

/** The subnets of a network, for its detail page. */
export function SubnetTable({ network }: { network: Network }) {
  const scope = useScope();
  const readOnly = useReadOnlyReason();
  const query = useQuery(subnetsQuery(scope));
  if (!query.data) return <NotLoaded query={query} />;
  const rows = query.data.results.filter((subnet) => subnet.network_id === network.id);
  const create = (
    <ActionLink to={scope.path('networks', network.id, 'subnets', 'new')} className="small" disabledReason={readOnly}>
      <Icon name="plus" /> Create subnet
    </ActionLink>
  );
  return (
    <Card title="Subnets" actions={create}>
      <Table
        label="Subnets"
        rows={rows}
        rowKey={(subnet) => subnet.id}
        columns={columnsOf(scope)}
        empty={<EmptyState title="No subnets">Resources need a subnet of the network for their addresses.</EmptyState>}
      />
    </Card>
  );
}
