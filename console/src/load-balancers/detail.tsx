import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { CopyableText } from '../ui/copy.tsx';
import { Card, DetailPage, Properties } from '../ui/detail-page.tsx';
import { FailureReason } from '../ui/failure-reason.tsx';
import { ActionLink, ActionLinks } from '../ui/page-head.tsx';
import { usePageActions } from '../ui/page-actions.ts';
import { resourceTabs } from '../ui/resource-tabs.tsx';
import { useScope } from '../ui/scope.tsx';
import { EmptyState, NotLoaded } from '../ui/states.tsx';
import { StatusBadge } from '../ui/status.tsx';
import { Ago } from '../ui/time.tsx';
import { type LoadBalancer, loadBalancerQuery, type Tree, treeQuery } from './data.ts';
import { Flow } from './flow.tsx';
import { Listeners } from './listeners/listeners.tsx';
import { Pools } from './pools/pools.tsx';
import { StatusTree } from './status-tree.tsx';
import { Traffic } from './traffic.tsx';
import { addressesOf, flavorSize } from './values.ts';
import './load-balancers.css';
import { useLockReason } from '../api/session.ts';

export function LoadBalancerDetail() {
  const { id } = useParams({ strict: false }) as { id: string };
  const scope = useScope();
  const to = (...segments: string[]) => scope.path('load-balancers', id, ...segments);
  usePageActions([
    { title: 'Edit this load balancer', to: to('edit') },
    { title: 'Change the flavor', to: to('resize') },
    { title: 'Repair this load balancer', to: to('failover') },
    { title: 'Add a listener', to: to('listeners', 'new') },
    { title: 'Add a pool', to: to('pools', 'new') },
    { title: 'Add an L7 policy', to: to('l7-policies', 'new') },
    { title: 'Delete this load balancer', to: to('delete') },
  ]);
  return (
    <DetailPage
      crumbs={[{ title: 'Load balancers', to: scope.path('load-balancers') }]}
      query={useQuery(loadBalancerQuery(scope, id))}
      driverKind="load balancers"
      titleOf={(balancer) => balancer.name}
      statusOf={(balancer) => balancer.operating_status}
      notice={(balancer) => <FailureReason id={balancer.id} status={balancer.provisioning_status} />}
      actions={(balancer) => <Actions balancer={balancer} />}
      tabs={(balancer) => [
        { key: 'overview', title: 'Overview', render: () => <Overview balancer={balancer} /> },
        {
          key: 'listeners',
          title: `Listeners (${balancer.listeners.length})`,
          render: () => <WithTree id={balancer.id}>{(tree) => <Listeners balancer={balancer} tree={tree} />}</WithTree>,
        },
        {
          key: 'pools',
          title: 'Pools',
          render: () => <WithTree id={balancer.id}>{(tree) => <Pools balancer={balancer} tree={tree} />}</WithTree>,
        },
        { key: 'traffic', title: 'Traffic', render: () => <Traffic id={balancer.id} /> },
        ...resourceTabs({ tags: balancer.tags_v2, table: 'load_balancers', id: balancer.id }),
      ]}
    />
  );
}

function Actions({ balancer }: { balancer: LoadBalancer }) {
  const scope = useScope();
  const reason = useLockReason(balancer, 'load balancer');
  const to = (action: string) => scope.path('load-balancers', balancer.id, action);
  return (
    <>
      {balancer.provisioning_status === 'ERROR' && (
        <ActionLink to={to('failover')} className="primary" disabledReason={reason}>
          Repair
        </ActionLink>
      )}
      <ActionLinks
        actions={{ edit: 'Edit', resize: 'Change flavor', delete: 'Delete' }}
        to={to}
        disabledReason={reason}
      />
    </>
  );
}

interface WithTreeProps {
  readonly id: string;
  readonly children: (tree: Tree) => ReactNode;
}

function WithTree({ id, children }: WithTreeProps) {
  const query = useQuery(treeQuery(useScope(), id));
  return query.data ? children(query.data) : <NotLoaded query={query} />;
}

function Overview({ balancer }: { balancer: LoadBalancer }) {
  const scope = useScope();
  const reason = useLockReason(balancer, 'load balancer');
  const { flavor } = balancer;
  const addresses = addressesOf(balancer);
  return (
    <>
      <Card title="Properties">
        <Properties
          items={{
            Address:
              addresses.length > 0 && addresses.map((each) => <CopyableText key={each} text={each} what="address" />),
            Status: <StatusBadge status={balancer.provisioning_status} />,
            Connections: balancer.admin_state_up ? 'accepted' : 'refused: the load balancer is off',
            Flavor: flavor && `${flavor.flavor_name} (${flavorSize(flavor)})`,
            Created: <Ago at={balancer.created_at} />,
            Changed: <Ago at={balancer.updated_at} />,
            ID: <CopyableText text={balancer.id} what="ID" />,
          }}
        />
      </Card>
      <WithTree id={balancer.id}>
        {(tree) =>
          tree.listeners.length + tree.pools.length === 0 ? (
            <EmptyState
              title="No listeners yet"
              action={
                <ActionLink
                  to={scope.path('load-balancers', balancer.id, 'listeners', 'new')}
                  className="primary"
                  disabledReason={reason}
                >
                  Create listener
                </ActionLink>
              }
            >
              A listener accepts connections at a port of the address and passes them to a pool.
            </EmptyState>
          ) : (
            <>
              <Card title="How a request flows">
                <Flow tree={tree} />
              </Card>
              <Card title="Status of all parts">
                <StatusTree tree={tree} />
              </Card>
            </>
          )
        }
      </WithTree>
    </>
  );
}
