import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { api, unwrap } from '../api/client.ts';
import { useSession } from '../api/session.ts';
import { Card } from '../ui/detail-page.tsx';
import { useScope } from '../ui/scope.tsx';
import { NotLoaded } from '../ui/states.tsx';
import { StatusBadge } from '../ui/status.tsx';
import { Ago } from '../ui/time.tsx';

const SHOWN = 5;

/** The newest notifications to the client and whether they were delivered. */
export function Alerts() {
  const scope = useScope();
  const { client_id } = useSession();
  const query = useQuery({
    queryKey: ['notifications', client_id, 'recent'],
    queryFn: () =>
      unwrap(
        api.GET('/cloudyard/v1/clients/{client_id}/notifications', {
          params: { path: { client_id }, query: { limit: SHOWN } },
        }),
      ),
  });
  return (
    <Card title="Recent alerts" actions={<Link to={scope.path('notifications')}>All notifications</Link>}>
      {!query.data && <NotLoaded query={query} />}
      {query.data?.count === 0 && <p className="card-body muted">No notification was sent.</p>}
      {query.data && query.data.count > 0 && (
        <ul className="card-body stack">
          {query.data.results.map((notification) => (
            <li key={notification.id}>
              <div className="row spread">
                <Link to={scope.path('notifications', notification.id)}>
                  <bdi>{notification.subject}</bdi>
                </Link>
                <Ago at={notification.created_at} />
              </div>
              <div className="row">
                {notification.deliveries.length === 0 && <span className="muted">no receiver</span>}
                {notification.deliveries.map((delivery) => (
                  <span key={delivery.id} className="row muted">
                    {delivery.channel} <StatusBadge status={delivery.state} />
                  </span>
                ))}
              </div>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
