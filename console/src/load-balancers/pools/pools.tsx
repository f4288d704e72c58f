import { useLockReason } from '../../api/session.ts';
import { Card, Properties } from '../../ui/detail-page.tsx';
import { Icon } from '../../ui/icons.tsx';
import { ActionLink } from '../../ui/page-head.tsx';
import { useScope } from '../../ui/scope.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { StatusBadge } from '../../ui/status.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import type { LbPool, LbPoolMember, LoadBalancer, Tree } from '../data.ts';
import { policyTitle } from '../l7-policies/policy.ts';

interface PoolsProps {
  readonly balancer: LoadBalancer;
  readonly tree: Tree;
}

/** The pools of a load balancer with their members. */
export function Pools({ balancer, tree }: PoolsProps) {
  const scope = useScope();
  const reason = useLockReason(balancer, 'load balancer');
  return (
    <>
      <div className="row">
        <ActionLink to={scope.path('load-balancers', balancer.id, 'pools', 'new')} disabledReason={reason}>
          <Icon name="plus" /> Create pool
        </ActionLink>
      </div>
      {tree.pools.length === 0 && (
        <EmptyState title="No pools yet">A pool has the members that get the traffic of a listener.</EmptyState>
      )}
      {tree.pools.map((pool) => (
        <PoolCard key={pool.id} pool={pool} balancer={balancer} tree={tree} />
      ))}
    </>
  );
}

const memberColumns: Column<LbPoolMember>[] = [
  {
    key: 'address',
    title: 'Member',
    render: ({ address, protocol_port }) => (
      <code>{address.includes(':') ? `[${address}]:${protocol_port}` : `${address}:${protocol_port}`}</code>
    ),
  },
  { key: 'health', title: 'Health', render: (member) => <StatusBadge status={member.operating_status} /> },
  { key: 'weight', title: 'Weight', kind: 'number', render: (member) => member.weight },
  { key: 'traffic', title: 'Traffic', render: (member) => (member.admin_state_up ? 'yes' : 'no: drained') },
  { key: 'backup', title: 'Backup', render: (member) => (member.backup ? 'yes' : 'no') },
  {
    key: 'monitor',
    title: 'Checked at',
    render: ({ monitor_address, monitor_port }) =>
      monitor_address || monitor_port ? (
        <code>{[monitor_address, monitor_port].filter(Boolean).join(' ')}</code>
      ) : (
        'same'
      ),
  },
  { key: 'status', title: 'Status', render: (member) => <StatusBadge status={member.provisioning_status} /> },
];

function PoolCard({ pool, balancer, tree }: PoolsProps & { pool: LbPool }) {
  const scope = useScope();
  const reason = useLockReason(balancer, 'load balancer');
  const to = (action: string) => scope.path('load-balancers', balancer.id, 'pools', pool.id, action);
  const label = <span className="visually-hidden">pool {pool.name}</span>;
  return (
    <Card
      title={`${pool.name} · ${pool.protocol}`}
      actions={
        <span className="row">
          <StatusBadge status={pool.operating_status} />
          <StatusBadge status={pool.provisioning_status} />
          <ActionLink to={to('members')} className="small" disabledReason={reason}>
            Edit members <span className="visually-hidden">of</span> {label}
          </ActionLink>
          <ActionLink to={to('edit')} className="small" disabledReason={reason}>
            Edit {label}
          </ActionLink>
          <ActionLink to={to('delete')} className="small danger" disabledReason={reason}>
            Delete {label}
          </ActionLink>
        </span>
      }
    >
      <Settings pool={pool} tree={tree} />
      <Table
        label={`Members of ${pool.name}`}
        rows={pool.members}
        rowKey={(member) => member.id}
        columns={memberColumns}
        empty={<p className="card-body muted">No members yet: clients get an error.</p>}
      />
    </Card>
  );
}

function Settings({ pool, tree }: { pool: LbPool; tree: Tree }) {
  const monitor = pool.healthmonitor;
  const persistence = pool.session_persistence;
  const listener = tree.listeners.find(({ id }) => id === pool.listeners[0]?.id);
  const users = [
    ...(listener ? [`listener ${listener.name}`] : []),
    ...tree.policies.filter((policy) => policy.redirect_pool_id === pool.id).map(policyTitle),
  ];
  return (
    <Properties
      items={{
        'Traffic from': users.length > 0 ? <bdi>{users.join(', ')}</bdi> : 'nowhere yet',
        Algorithm: pool.lb_algorithm.toLowerCase().replaceAll('_', ' '),
        'Health monitor': monitor ? (
          <>
            {monitor.type} every {monitor.delay} s, at most {monitor.timeout} s; up after {monitor.max_retries}, down
            after {monitor.max_retries_down} {monitor.url_path && <bdi>({monitor.url_path})</bdi>}
          </>
        ) : (
          'none: members are not checked'
        ),
        'Session persistence': persistence ? (
          <>
            {persistence.type.toLowerCase().replaceAll('_', ' ')}{' '}
            {persistence.cookie_name && <bdi>{persistence.cookie_name}</bdi>}
          </>
        ) : (
          'off'
        ),
        ...(pool.admin_state_up ? {} : { Traffic: 'none: the pool is off' }),
      }}
    />
  );
}
