import { useQuery } from '@tanstack/react-query';
import { Link, Outlet } from '@tanstack/react-router';
import { useNotClientAdminReason } from '../api/session.ts';
import { clientQuery } from '../clients/data.ts';
import { Card } from '../ui/detail-page.tsx';
import { Icon } from '../ui/icons.tsx';
import { usePageActions } from '../ui/page-actions.ts';
import { ActionLink, PageHead } from '../ui/page-head.tsx';
import { useClientId, useScope } from '../ui/scope.tsx';
import { EmptyState, NotLoaded } from '../ui/states.tsx';
import { SimulatedBadge } from '../ui/status.tsx';
import { Table } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { hostOf, webhooksQuery } from './data.ts';

/** The receivers of notifications: webhooks and e-mail addresses of the client. */
export function Webhooks() {
  const scope = useScope();
  const reason = useNotClientAdminReason();
  usePageActions([{ title: 'Edit the e-mail addresses', to: scope.path('webhooks', 'addresses') }]);
  return (
    <>
      <PageHead
        title="Webhooks"
        badges={<SimulatedBadge kind="webhook deliveries" />}
        actions={
          <ActionLink to={scope.path('webhooks', 'new')} className="primary" disabledReason={reason} shortcut="create">
            <Icon name="plus" /> Create webhook
          </ActionLink>
        }
      >
        <p>Each notification is sent to every webhook and every e-mail address.</p>
      </PageHead>
      <div className="stack">
        <Receivers />
        <Addresses />
      </div>
      <Outlet />
    </>
  );
}

function Receivers() {
  const scope = useScope();
  const reason = useNotClientAdminReason();
  const query = useQuery(webhooksQuery(useClientId()));
  return (
    <Card title="Webhooks">
      {query.data ? (
        <Table
          label="Webhooks of the client"
          rows={query.data.results}
          rowKey={(webhook) => webhook.id}
          columns={[
            {
              key: 'url',
              title: 'URL',
              kind: 'name',
              render: (webhook) => (
                <Link to={scope.path('webhooks', webhook.id)}>
                  <code>{webhook.url}</code>
                </Link>
              ),
            },
            { key: 'created', title: 'Created', render: (webhook) => <Ago at={webhook.created_at} /> },
            {
              key: 'actions',
              title: 'Actions',
              kind: 'actions',
              render: (webhook) => (
                <ActionLink
                  to={scope.path('webhooks', webhook.id, 'delete')}
                  className="quiet small danger"
                  disabledReason={reason}
                >
                  Delete <span className="visually-hidden">{hostOf(webhook)}</span>
                </ActionLink>
              ),
            },
          ]}
          empty={
            <EmptyState title="No webhooks yet">
              A webhook is a URL that gets each notification as a signed POST.
            </EmptyState>
          }
        />
      ) : (
        <NotLoaded query={query} />
      )}
    </Card>
  );
}

function Addresses() {
  const scope = useScope();
  const reason = useNotClientAdminReason();
  const query = useQuery(clientQuery(useClientId()));
  const edit = (
    <ActionLink to={scope.path('webhooks', 'addresses')} className="small" disabledReason={reason}>
      Edit addresses
    </ActionLink>
  );
  return (
    <Card title="E-mail addresses" actions={edit}>
      <div className="card-body">
        {!query.data && <NotLoaded query={query} rows={2} />}
        {query.data?.emails.length === 0 && <p className="muted">No address gets notifications.</p>}
        <ul>
          {query.data?.emails.map((email) => (
            <li key={email}>
              <bdi>{email}</bdi>
            </li>
          ))}
        </ul>
      </div>
    </Card>
  );
}
