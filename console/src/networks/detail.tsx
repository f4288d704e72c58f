import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useLockReason } from '../api/session.ts';
import { SubnetTable } from '../subnets/table.tsx';
import { CopyableText } from '../ui/copy.tsx';
import { Card, DetailPage, Properties } from '../ui/detail-page.tsx';
import { usePageActions } from '../ui/page-actions.ts';
import { ActionLinks } from '../ui/page-head.tsx';
import { resourceTabs } from '../ui/resource-tabs.tsx';
import { useScope } from '../ui/scope.tsx';
import { Ago } from '../ui/time.tsx';
import { type Network, networkQuery } from './data.ts';

export function NetworkDetail() {
  const { id } = useParams({ strict: false }) as { id: string };
  const scope = useScope();
  usePageActions([
    { title: 'Create a subnet in this network', to: scope.path('networks', id, 'subnets', 'new') },
    { title: 'Edit this network', to: scope.path('networks', id, 'edit') },
    { title: 'Delete this network', to: scope.path('networks', id, 'delete') },
  ]);
  return (
    <DetailPage
      crumbs={[{ title: 'Networks', to: scope.path('networks') }]}
      query={useQuery(networkQuery(scope, id))}
      titleOf={(network) => network.name}
      actions={(network) => <Actions network={network} />}
      tabs={(network) => [
        { key: 'overview', title: 'Overview', render: () => <Overview network={network} /> },
        ...resourceTabs({ tags: network.tags, table: 'networks', id: network.id }),
      ]}
    />
  );
}

function Actions({ network }: { network: Network }) {
  const scope = useScope();
  const reason = useLockReason(network, 'network');
  const to = (action: string) => scope.path('networks', network.id, action);
  return <ActionLinks actions={{ edit: 'Edit', delete: 'Delete' }} to={to} disabledReason={reason} />;
}

function Overview({ network }: { network: Network }) {
  return (
    <>
      <Card title="Properties">
        <Properties
          items={{
            Type: network.type,
            MTU: `${network.mtu} bytes`,
            'Default of the project': network.default ? 'yes' : 'no',
            'Other projects': network.shared ? 'can use it' : 'cannot use it',
            Created: <Ago at={network.created_at} />,
            Changed: <Ago at={network.updated_at} />,
            ID: <CopyableText text={network.id} what="ID" />,
          }}
        />
      </Card>
      <SubnetTable network={network} />
    </>
  );
}
