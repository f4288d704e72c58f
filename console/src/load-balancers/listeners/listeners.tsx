import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useLockReason } from '../../api/session.ts';
import { Expiry } from '../../secrets/expiry.tsx';
import { secretsQuery } from '../../secrets/data.ts';
import { Card, Properties } from '../../ui/detail-page.tsx';
import { Icon } from '../../ui/icons.tsx';
import { formatNumber } from '../../ui/numbers.ts';
import { ActionLink } from '../../ui/page-head.tsx';
import { useScope } from '../../ui/scope.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { StatusBadge } from '../../ui/status.tsx';
import type { Listener, LoadBalancer, Tree } from '../data.ts';
import { Policies } from '../l7-policies/policies.tsx';
import { hasHeaders } from './protocols.ts';

interface ListenersProps {
  readonly balancer: LoadBalancer;
  readonly tree: Tree;
}

/** The listeners of a load balancer, each with its settings and L7 policies. */
export function Listeners({ balancer, tree }: ListenersProps) {
  const scope = useScope();
  const reason = useLockReason(balancer, 'load balancer');
  const to = (...segments: string[]) => scope.path('load-balancers', balancer.id, ...segments);
  return (
    <>
      <div className="row">
        <ActionLink to={to('listeners', 'new')} disabledReason={reason}>
          <Icon name="plus" /> Create listener
        </ActionLink>
        <ActionLink to={to('l7-policies', 'new')} disabledReason={reason}>
          <Icon name="plus" /> Create L7 policy
        </ActionLink>
      </div>
      {tree.listeners.length === 0 && (
        <EmptyState title="No listeners yet">
          A listener accepts connections at a port of the address and passes them to a pool.
        </EmptyState>
      )}
      {tree.listeners.map((listener) => (
        <ListenerCard key={listener.id} listener={listener} balancer={balancer} tree={tree} />
      ))}
    </>
  );
}

function ListenerCard({ listener, balancer, tree }: ListenersProps & { listener: Listener }) {
  const scope = useScope();
  const reason = useLockReason(balancer, 'load balancer');
  const to = (action: string) => scope.path('load-balancers', balancer.id, 'listeners', listener.id, action);
  const label = <span className="visually-hidden">listener {listener.name}</span>;
  return (
    <Card
      title={`${listener.name} · ${listener.protocol} ${listener.protocol_port}`}
      actions={
        <span className="row">
          <StatusBadge status={listener.operating_status} />
          <StatusBadge status={listener.provisioning_status} />
          <ActionLink to={to('edit')} className="small" disabledReason={reason}>
            Edit {label}
          </ActionLink>
          <ActionLink to={to('delete')} className="small danger" disabledReason={reason}>
            Delete {label}
          </ActionLink>
        </span>
      }
    >
      <Settings listener={listener} tree={tree} />
      {hasHeaders(listener.protocol) && (
        <Policies balancer={balancer} tree={tree} policies={tree.policies.filter(isOf(listener))} />
      )}
    </Card>
  );
}

const isOf = (listener: Listener) => (policy: { listener_id: string }) => policy.listener_id === listener.id;

function Settings({ listener, tree }: { listener: Listener; tree: Tree }) {
  const pool = tree.pools.find((each) => each.listeners.some(({ id }) => id === listener.id));
  const { allowed_cidrs: allowed, secret_id, sni_secret_id } = listener;
  const certificates = [...(secret_id ? [secret_id] : []), ...(sni_secret_id ?? [])];
  const timeouts = [listener.timeout_client_data, listener.timeout_member_connect, listener.timeout_member_data];
  const milliseconds = (value: number | null) => (value ? `${formatNumber(value)} ms` : 'default');
  return (
    <Properties
      items={{
        'Default pool': pool && (
          <Link to="." search={{ tab: 'pools' } as never}>
            <bdi>{pool.name}</bdi>
          </Link>
        ),
        'Who may connect':
          allowed === null ? 'everyone' : allowed.length === 0 ? 'nobody' : <bdi>{allowed.join(', ')}</bdi>,
        'Connection limit': listener.connection_limit < 0 ? 'default' : formatNumber(listener.connection_limit),
        Connections: listener.admin_state_up ? 'accepted' : 'refused: the listener is off',
        'Timeouts (client, connect, member)': timeouts.some(Boolean)
          ? timeouts.map(milliseconds).join(', ')
          : 'default',
        ...(Object.keys(listener.insert_headers).length > 0
          ? { 'Added headers': Object.keys(listener.insert_headers).join(', ') }
          : {}),
        ...(listener.user_list.length > 0
          ? { 'Basic authentication': <bdi>{listener.user_list.map(({ username }) => username).join(', ')}</bdi> }
          : {}),
        ...(certificates.length > 0 ? { Certificates: <Certificates ids={certificates} /> } : {}),
      }}
    />
  );
}

/** The certificates of a listener and until when each can be used. */
function Certificates({ ids }: { ids: readonly string[] }) {
  const scope = useScope();
  const secrets = useQuery(secretsQuery(scope)).data?.results ?? [];
  return (
    <ul>
      {ids.map((id) => {
        const secret = secrets.find((each) => each.id === id);
        return (
          <li key={id} className="row">
            <Link to={scope.path('secrets', id)}>
              <bdi>{secret?.name ?? id}</bdi>
            </Link>
            {secret && <Expiry at={secret.expiration} />}
          </li>
        );
      })}
    </ul>
  );
}
