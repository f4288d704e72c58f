import { useMutation, useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { messageOf } from '../api/errors.ts';
import { useLimitedReason } from '../api/session.ts';
import { ActionButton } from '../ui/action-button.tsx';
import { ByCode } from '../ui/by-code.tsx';
import { CodeBlock } from '../ui/copy.tsx';
import { Card, DetailPage, Properties } from '../ui/detail-page.tsx';
import { useClientId, useScope } from '../ui/scope.tsx';
import { EmptyState } from '../ui/states.tsx';
import { StatusBadge } from '../ui/status.tsx';
import { FullDate } from '../ui/time.tsx';
import { showToast } from '../ui/toasts.tsx';
import { Attempts } from './attempts.tsx';
import { type Delivery, type Notification, notificationQuery, RESEND, resend } from './data.ts';

export function NotificationDetail() {
  const { id } = useParams({ strict: false }) as { id: string };
  const scope = useScope();
  return (
    <DetailPage
      crumbs={[{ title: 'Notifications', to: scope.path('notifications') }]}
      query={useQuery(notificationQuery(useClientId(), id))}
      titleOf={(notification) => notification.subject}
      actions={() => null}
      tabs={(notification) => [
        { key: 'deliveries', title: 'Deliveries', render: () => <Deliveries notification={notification} /> },
        {
          key: 'payload',
          title: 'Payload',
          render: () => <CodeBlock text={payloadOf(notification)} what="payload" />,
        },
      ]}
    />
  );
}

/** What receivers get, without the deliveries. */
function payloadOf({ deliveries: _deliveries, ...payload }: Notification): string {
  return JSON.stringify(payload, null, 2);
}

function Deliveries({ notification }: { notification: Notification }) {
  return (
    <>
      <Card title="Properties">
        <Properties
          items={{
            Type: <code>{notification.type}</code>,
            Created: <FullDate at={notification.created_at} />,
            ID: <code>{notification.id}</code>,
          }}
        />
      </Card>
      {notification.deliveries.length === 0 && (
        <EmptyState title="No receiver">The client had neither a webhook nor an e-mail address.</EmptyState>
      )}
      {notification.deliveries.map((delivery) => (
        <DeliveryCard key={delivery.id} notification={notification} delivery={delivery} />
      ))}
    </>
  );
}

function DeliveryCard({ notification, delivery }: { notification: Notification; delivery: Delivery }) {
  const params = { client_id: notification.client_id, notification_id: notification.id, delivery_id: delivery.id };
  return (
    <Card
      title={`${delivery.channel === 'email' ? 'E-mail' : 'Webhook'} ${delivery.target}`}
      actions={<Resend notification={notification} delivery={delivery} />}
    >
      <Properties
        items={{
          State: <StatusBadge status={delivery.state} />,
          Attempts: delivery.attempt_count,
          'Next attempt': delivery.next_attempt_at && <FullDate at={delivery.next_attempt_at} />,
          Ended: delivery.ended_at && <FullDate at={delivery.ended_at} />,
        }}
      />
      <Attempts target={delivery.target} attempts={delivery.attempts} />
      <div className="card-body">
        <ByCode calls={[{ operationId: 'replayDelivery', method: 'POST', path: RESEND, params }]} />
      </div>
    </Card>
  );
}

function Resend({ notification, delivery }: { notification: Notification; delivery: Delivery }) {
  const reason = useLimitedReason();
  const mutation = useMutation({
    mutationFn: () => resend(notification, delivery),
    onSuccess: () => showToast({ tone: 'ok', text: `The notification is sent to ${delivery.target} again` }),
    onError: (error) => showToast({ tone: 'bad', text: messageOf(error) }),
  });
  return (
    <ActionButton
      className="small"
      disabledReason={reason}
      isDisabled={mutation.isPending}
      onClick={() => mutation.mutate()}
    >
      Resend <span className="visually-hidden">to {delivery.target}</span>
    </ActionButton>
  );
}
