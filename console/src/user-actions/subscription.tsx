import { useQuery } from '@tanstack/react-query';
import { Card, Properties } from '../ui/detail-page.tsx';
import { ActionLink } from '../ui/page-head.tsx';
import { useNotClientAdminReason, useSession } from '../api/session.ts';
import { useScope } from '../ui/scope.tsx';
import { EmptyState, NotLoaded } from '../ui/states.tsx';
import { subscriptionQuery } from './data.ts';

/** The URL that receives the actions of the client. */
export function Subscription() {
  const scope = useScope();
  const { role } = useSession();
  const reason = useNotClientAdminReason();
  const query = useQuery({ ...subscriptionQuery, enabled: reason === null });
  const isSubscribed = Boolean(query.data);
  const action = (
    <ActionLink
      to={scope.path('user-actions', isSubscribed ? 'unsubscribe' : 'subscribe')}
      className={isSubscribed ? 'small danger' : 'small'}
      disabledReason={reason}
    >
      {isSubscribed ? 'Unsubscribe' : 'Subscribe'}
    </ActionLink>
  );
  return (
    <Card title="Subscription" actions={action}>
      {role !== 'admin' && (
        <EmptyState title="Admins only">The subscription needs a token with the role admin.</EmptyState>
      )}
      {role === 'admin' && reason !== null && (
        <EmptyState title="Unlimited tokens only">
          A subscription has the actions of all projects, and the token of this session is limited to some of them.
        </EmptyState>
      )}
      {reason === null && query.data === undefined && <NotLoaded query={query} rows={2} />}
      {query.data === null && (
        <EmptyState title="No subscription">A subscription sends each action to a URL as a signed POST.</EmptyState>
      )}
      {query.data && (
        <Properties
          items={{
            URL: <code>{query.data.url}</code>,
            Header: <code>{query.data.auth_header_name}</code>,
            ID: query.data.id,
          }}
        />
      )}
    </Card>
  );
}
