import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useLockReason } from '../api/session.ts';
import { networkQuery, type Subnet, subnetQuery } from '../networks/data.ts';
import { CopyableText } from '../ui/copy.tsx';
import { Card, DetailPage, Properties } from '../ui/detail-page.tsx';
import { usePageActions } from '../ui/page-actions.ts';
import { ActionLinks } from '../ui/page-head.tsx';
import { resourceTabs } from '../ui/resource-tabs.tsx';
import { useScope } from '../ui/scope.tsx';
import { Table } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { addressesOf } from './table.tsx';

export function SubnetDetail() {
  const { id } = useParams({ strict: false }) as { id: string };
  const scope = useScope();
  usePageActions([
    { title: 'Edit this subnet', to: scope.path('subnets', id, 'edit') },
    { title: 'Delete this subnet', to: scope.path('subnets', id, 'delete') },
  ]);
  return (
    <DetailPage
      crumbs={[{ title: 'Subnets', to: scope.path('subnets') }]}
      query={useQuery(subnetQuery(scope, id))}
      titleOf={(subnet) => subnet.name}
      actions={(subnet) => <Actions subnet={subnet} />}
      tabs={(subnet) => [
        { key: 'overview', title: 'Overview', render: () => <Overview subnet={subnet} /> },
        ...resourceTabs({ tags: subnet.tags, table: 'subnets', id: subnet.id }),
      ]}
    />
  );
}

function Actions({ subnet }: { subnet: Subnet }) {
  const scope = useScope();
  const reason = useLockReason(subnet, 'subnet');
  const to = (action: string) => scope.path('subnets', subnet.id, action);
  return <ActionLinks actions={{ edit: 'Edit', delete: 'Delete' }} to={to} disabledReason={reason} />;
}

function Overview({ subnet }: { subnet: Subnet }) {
  const scope = useScope();
  const network = useQuery(networkQuery(scope, subnet.network_id)).data;
  return (
    <>
      <Card title="Properties">
        <Properties
          items={{
            Range: <code>{subnet.cidr}</code>,
            Gateway: subnet.gateway_ip && <code>{subnet.gateway_ip}</code>,
            'Free addresses': addressesOf(subnet),
            Network: (
              <Link to={scope.path('networks', subnet.network_id)}>
                <bdi>{network?.name ?? subnet.network_id}</bdi>
              </Link>
            ),
            DHCP: subnet.enable_dhcp ? 'on' : 'off',
            'DNS servers': subnet.dns_nameservers.join(', ') || null,
            Created: <Ago at={subnet.created_at} />,
            Changed: <Ago at={subnet.updated_at} />,
            ID: <CopyableText text={subnet.id} what="ID" />,
          }}
        />
      </Card>
      {subnet.host_routes.length > 0 && (
        <Card title="Static routes">
          <Table
            label="Static routes"
            rows={subnet.host_routes}
            rowKey={({ destination, nexthop }) => `${destination} ${nexthop}`}
            columns={[
              { key: 'destination', title: 'Destination', render: (route) => <code>{route.destination}</code> },
              { key: 'nexthop', title: 'Router', render: (route) => <code>{route.nexthop}</code> },
            ]}
          />
        </Card>
      )}
    </>
  );
}
