import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useNotClientAdminReason } from '../api/session.ts';
import { type Notification, notificationsQuery } from '../notifications/data.ts';
import { CopyableText } from '../ui/copy.tsx';
import { Card, DetailPage, Properties } from '../ui/detail-page.tsx';
import { usePageActions } from '../ui/page-actions.ts';
import { ActionLinks } from '../ui/page-head.tsx';
import { auditTab } from '../ui/resource-tabs.tsx';
import { useClientId, useScope } from '../ui/scope.tsx';
import { EmptyState, NotLoaded } from '../ui/states.tsx';
import { StatusBadge } from '../ui/status.tsx';
import { Table } from '../ui/table.tsx';
import { Ago, FullDate } from '../ui/time.tsx';
import { hostOf, type Webhook, webhookQuery } from './data.ts';

const ACTIONS = { edit: 'Edit', 'new-secret': 'Replace secret', delete: 'Delete' };
/** Listed notifications; the page of notifications has all. */
const LISTED = 50;

export function WebhookDetail() {
  const { webhook: id } = useParams({ strict: false }) as { webhook: string };
  const scope = useScope();
  const reason = useNotClientAdminReason();
  const to = (action: string) => scope.path('webhooks', id, action);
  usePageActions([
    { title: 'Edit this webhook', to: to('edit') },
    { title: 'Replace the secret of this webhook', to: to('new-secret') },
    { title: 'Delete this webhook', to: to('delete') },
  ]);
  return (
    <DetailPage
      crumbs={[{ title: 'Webhooks', to: scope.path('webhooks') }]}
      query={useQuery(webhookQuery(useClientId(), id))}
      driverKind="webhook deliveries"
      titleOf={hostOf}
      actions={() => <ActionLinks actions={ACTIONS} to={to} disabledReason={reason} />}
      tabs={(webhook) => [
        { key: 'deliveries', title: 'Deliveries', render: () => <Deliveries key={webhook.id} webhook={webhook} /> },
        auditTab({ table: 'webhooks', id: webhook.id }),
      ]}
    />
  );
}

function Deliveries({ webhook }: { webhook: Webhook }) {
  const scope = useScope();
  const filter = { webhook_id: webhook.id, limit: LISTED, offset: 0 };
  const query = useQuery(notificationsQuery(useClientId(), filter));
  const all = (
    <Link to={scope.path('notifications')} search={{ webhook: webhook.id } as never}>
      All deliveries
    </Link>
  );
  return (
    <>
      <Card title="Properties">
        <Properties
          items={{
            URL: <CopyableText text={webhook.url} what="URL" />,
            Created: <FullDate at={webhook.created_at} />,
            ID: <code>{webhook.id}</code>,
          }}
        />
      </Card>
      <Card title="Deliveries" actions={all}>
        {query.data ? (
          <Table
            label="Deliveries"
            rows={query.data.results}
            rowKey={(notification) => notification.id}
            columns={[
              {
                key: 'subject',
                title: 'Notification',
                kind: 'name',
                render: ({ id, subject }) => <Link to={scope.path('notifications', id)}>{subject}</Link>,
              },
              {
                key: 'state',
                title: 'State',
                render: (each) => <StatusBadge status={deliveryOf(each, webhook).state} />,
              },
              {
                key: 'response',
                title: 'Last response',
                kind: 'wrap',
                render: (each) => <bdi className="mono">{deliveryOf(each, webhook).attempts.at(-1)?.answer}</bdi>,
              },
              { key: 'created', title: 'Created', render: ({ created_at }) => <Ago at={created_at} /> },
            ]}
            empty={<EmptyState title="No deliveries">No notification was sent to this webhook yet.</EmptyState>}
          />
        ) : (
          <NotLoaded query={query} />
        )}
      </Card>
    </>
  );
}

function deliveryOf({ deliveries }: Notification, webhook: Webhook) {
  return deliveries.find(({ webhook_id }) => webhook_id === webhook.id)!;
}
