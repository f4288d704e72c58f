import { useQuery } from '@tanstack/react-query';
import { createdColumn, nameColumn, tagsText } from '../ui/columns.tsx';
import { ListPage } from '../ui/list-page.tsx';
import { type Scope, useScope } from '../ui/scope.tsx';
import type { Column } from '../ui/table.tsx';
import { type Network, networksQuery } from './data.ts';

const columnsOf = (scope: Scope): Column<Network>[] => [
  nameColumn(
    (network) => scope.path('networks', network.id),
    (network) => network.default && 'project default',
  ),
  { key: 'type', title: 'Type', sortBy: (network) => network.type },
  { key: 'subnets', title: 'Subnets', kind: 'number', sortBy: (network) => network.subnets.length },
  { key: 'mtu', title: 'MTU', kind: 'number', sortBy: (network) => network.mtu },
  createdColumn,
];

export function NetworkList() {
  const scope = useScope();
  return (
    <ListPage
      title="Networks"
      description="Records that file shares and load balancers name. No traffic is routed through them."
      query={useQuery(networksQuery(scope))}
      columns={columnsOf(scope)}
      rowKey={(network) => network.id}
      textOf={({ name, id, tags }) => [name, id, tagsText(tags)].join(' ')}
      filters={[{ name: 'type', label: 'Type', valueOf: (network) => network.type }]}
      create={{ label: 'Create network', to: scope.path('networks', 'new') }}
      empty={{ title: 'No networks yet', text: 'A network holds subnets, from which resources get their addresses.' }}
    />
  );
}
