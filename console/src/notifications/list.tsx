import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Pager } from '../ui/list-page.tsx';
import { PAGE_SIZE, useListState } from '../ui/list-state.ts';
import { PageHead } from '../ui/page-head.tsx';
import { useClientId, useScope } from '../ui/scope.tsx';
import type { Scope } from '../ui/scope.tsx';
import { EmptyState, ErrorState, Skeleton } from '../ui/states.tsx';
import { StatusBadge } from '../ui/status.tsx';
import { Table } from '../ui/table.tsx';
import type { Column } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { notificationsQuery } from './data.ts';
import type { Notification } from './data.ts';

export function NotificationList() {
  const scope = useScope();
  const state = useListState();
  const page = { limit: PAGE_SIZE, offset: (state.page - 1) * PAGE_SIZE };
  const query = useQuery(notificationsQuery(useClientId(), page));
  return (
    <>
      <PageHead title="Notifications">
        <p>
          Messages to the client, and whether its <Link to={scope.path('webhooks')}>webhooks and addresses</Link> got
          them.
        </p>
      </PageHead>
      <section className="card" aria-label="Sent notifications">
        {query.isPending && <Skeleton rows={6} />}
        {query.error && !query.data && <ErrorState error={query.error} retry={() => void query.refetch()} />}
        {query.data?.count === 0 && (
          <EmptyState title="No notification was sent">They report quotas, missed schedules and requests.</EmptyState>
        )}
        {query.data && query.data.count > 0 && (
          <>
            <Table
              label="Notifications of the client"
              columns={columnsOf(scope)}
              rows={query.data.results}
              rowKey={(notification) => notification.id}
            />
            <Pager page={state.page} count={query.data.count} setPage={(next) => state.set({ page: String(next) })} />
          </>
        )}
      </section>
    </>
  );
}

const columnsOf = (scope: Scope): Column<Notification>[] => [
  {
    key: 'subject',
    title: 'Subject',
    kind: 'name',
    render: (notification) => (
      <Link to={scope.path('notifications', notification.id)}>
        <bdi>{notification.subject}</bdi>
      </Link>
    ),
  },
  { key: 'type', title: 'Type', render: (notification) => <code>{notification.type}</code> },
  { key: 'created', title: 'Created', render: (notification) => <Ago at={notification.created_at} /> },
  {
    key: 'deliveries',
    title: 'Deliveries',
    kind: 'wrap',
    render: ({ deliveries }) =>
      deliveries.length === 0 ? (
        <span className="muted">no receiver</span>
      ) : (
        <span className="row">
          {deliveries.map((delivery) => (
            <span key={delivery.id}>
              {delivery.channel} <StatusBadge status={delivery.state} />
            </span>
          ))}
        </span>
      ),
  },
];
