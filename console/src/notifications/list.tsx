import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import schema from 'schema:NotificationType';
import { useReadsWebhooks } from '../api/session.ts';
import { FilterSelect } from '../ui/filter-select.tsx';
import { ServerRows } from '../ui/server-rows.tsx';
import { type ListState, PAGE_SIZE, useListState } from '../ui/list-state.ts';
import { PageHead } from '../ui/page-head.tsx';
import { type Scope, useClientId, useScope } from '../ui/scope.tsx';
import { EmptyState } from '../ui/states.tsx';
import { StatusBadge } from '../ui/status.tsx';
import type { Column } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { hostOf, webhooksQuery } from '../webhooks/data.ts';
import { type Notification, type NotificationFilter, notificationsQuery } from './data.ts';

export function NotificationList() {
  const scope = useScope();
  const state = useListState();
  const query = useQuery(notificationsQuery(useClientId(), filterOf(state)));
  return (
    <>
      <PageHead title="Notifications">
        <p>
          Messages to the client, and whether its{' '}
          {useReadsWebhooks() ? (
            <Link to={scope.path('webhooks')}>webhooks and addresses</Link>
          ) : (
            'webhooks and addresses'
          )}{' '}
          got them.
        </p>
      </PageHead>
      <section className="card" aria-label="Sent notifications">
        <NotificationTools state={state} />
        <ServerRows
          label="Notifications of the client"
          query={query}
          columns={columnsOf(scope)}
          empty={
            <EmptyState title={isFiltered(state) ? 'Nothing matches the filter' : 'No notification was sent'}>
              They report quotas, missed schedules and requests.
            </EmptyState>
          }
        />
      </section>
    </>
  );
}

const FILTERS = ['type', 'state', 'webhook'] as const;
const STATES = ['pending', 'delivered', 'simulated', 'failed'];
const TYPES = (schema.enum ?? []).map(String);

/** The filter in the URL. The server filters: clients may have many notifications. */
function filterOf(state: ListState): NotificationFilter {
  const [type, delivery, webhook] = FILTERS.map((name) => state.get(name));
  return {
    limit: PAGE_SIZE,
    offset: (state.page - 1) * PAGE_SIZE,
    order_by: state.sort === 'created' ? 'created_at.asc' : 'created_at.desc',
    ...(type && { type: type as NonNullable<NotificationFilter['type']> }),
    ...(delivery && { delivery_state: delivery as NonNullable<NotificationFilter['delivery_state']> }),
    ...(webhook && { webhook_id: webhook }),
  };
}

const isFiltered = (state: ListState) => FILTERS.some((name) => state.get(name) !== '');

function NotificationTools({ state }: { state: ListState }) {
  const clientId = useClientId();
  const isOffered = useReadsWebhooks();
  const query = useQuery({ ...webhooksQuery(clientId), enabled: isOffered && clientId !== undefined });
  const webhooks = query.data?.results ?? [];
  return (
    <div className="list-tools" role="search">
      <FilterSelect state={state} name="type" label="Type" options={TYPES} />
      <FilterSelect state={state} name="state" label="Delivery" options={STATES} />
      {isOffered && (
        <FilterSelect
          state={state}
          name="webhook"
          label="Webhook"
          options={webhooks.map((webhook) => ({ value: webhook.id, text: hostOf(webhook) }))}
        />
      )}
      {isFiltered(state) && (
        <button type="button" className="button small" onClick={() => state.set({ type: '', state: '', webhook: '' })}>
          Clear the filter
        </button>
      )}
    </div>
  );
}

const columnsOf = (scope: Scope): Column<Notification>[] => [
  {
    key: 'subject',
    title: 'Subject',
    kind: 'name',
    render: (notification) => <Link to={scope.path('notifications', notification.id)}>{notification.subject}</Link>,
  },
  { key: 'type', title: 'Type', render: (notification) => <code>{notification.type}</code> },
  {
    key: 'created',
    title: 'Created',
    sortBy: ({ created_at }) => created_at,
    render: (notification) => <Ago at={notification.created_at} />,
  },
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
