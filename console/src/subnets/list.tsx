import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { networksQuery, type Subnet, subnetsQuery } from '../networks/data.ts';
import { tagsText } from '../ui/columns.tsx';
import { ListPage } from '../ui/list-page.tsx';
import { useScope } from '../ui/scope.tsx';
import type { Column } from '../ui/table.tsx';
import { columnsOf } from './table.tsx';

export function SubnetList() {
  const scope = useScope();
  const networks = useQuery(networksQuery(scope)).data?.results ?? [];
  const names = new Map(networks.map(({ id, name }) => [id, name]));
  const nameOf = ({ network_id: id }: Subnet) => names.get(id) ?? id;
  const networkColumn: Column<Subnet> = {
    key: 'network',
    title: 'Network',
    kind: 'clip',
    sortBy: nameOf,
    render: (subnet) => <Link to={scope.path('networks', subnet.network_id)}>{nameOf(subnet)}</Link>,
  };
  const [name, ...others] = columnsOf(scope);
  return (
    <ListPage
      title="Subnets"
      description="Address ranges of networks."
      query={useQuery(subnetsQuery(scope))}
      columns={[name!, networkColumn, ...others]}
      rowKey={(subnet) => subnet.id}
      textOf={(subnet) => [subnet.name, subnet.id, subnet.cidr, nameOf(subnet), tagsText(subnet.tags)].join(' ')}
      filters={[{ name: 'network', label: 'Network', valueOf: nameOf }]}
      create={{ label: 'Create subnet', to: scope.path('subnets', 'new') }}
      empty={{ title: 'No subnets yet', text: 'A subnet is a range of addresses of a network.' }}
    />
  );
}
