import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useNotClientAdminReason, useNotOperatorReason } from '../api/session.ts';
import { QuotaCards } from '../quotas/cards.tsx';
import { clientQuotasQuery, thresholdQuery } from '../quotas/data.ts';
import { Card, DetailPage, Properties } from '../ui/detail-page.tsx';
import { usePageActions } from '../ui/page-actions.ts';
import { ActionLinks } from '../ui/page-head.tsx';
import { auditTab } from '../ui/resource-tabs.tsx';
import { useScope } from '../ui/scope.tsx';
import { NotLoaded } from '../ui/states.tsx';
import { FullDate } from '../ui/time.tsx';
import { type Client, clientQuery } from './data.ts';

export function ClientDetail() {
  const { id } = useParams({ strict: false }) as { id: string };
  const scope = useScope();
  const notAdmin = useNotClientAdminReason();
  const notOperator = useNotOperatorReason();
  const to = (action: string) => scope.path('clients', id, action);
  usePageActions([
    { title: 'Edit this client', to: to('edit') },
    ...(notOperator === null ? [{ title: 'Set a limit of this client', to: to('limit') }] : []),
  ]);
  return (
    <DetailPage
      crumbs={[{ title: 'Clients', to: scope.path('clients') }]}
      query={useQuery(clientQuery(Number(id)))}
      titleOf={(client) => client.name}
      actions={() => (
        <>
          <ActionLinks actions={{ edit: 'Edit' }} to={to} disabledReason={notAdmin} />
          <ActionLinks actions={{ limit: 'Set limit' }} to={to} disabledReason={notOperator} />
        </>
      )}
      tabs={(client) => [
        { key: 'overview', title: 'Overview', render: () => <Overview client={client} /> },
        { key: 'quotas', title: 'Quotas', render: () => <Quotas client={client} /> },
        auditTab({ table: 'clients', id: client.id }),
      ]}
    />
  );
}

function Overview({ client }: { client: Client }) {
  const scope = useScope();
  const links = (
    <span className="row">
      <Link to={scope.path('tokens')} search={{ client: String(client.id) } as never}>
        Tokens of this client
      </Link>
      <Link to={scope.path('audit')} search={{ client_id: String(client.id) } as never}>
        Changes of this client
      </Link>
    </span>
  );
  return (
    <Card title="Properties" actions={links}>
      <Properties
        items={{
          'E-mail addresses': client.emails.length > 0 && <bdi>{client.emails.join(', ')}</bdi>,
          Created: <FullDate at={client.created_at} />,
          ID: client.id,
        }}
      />
    </Card>
  );
}

function Quotas({ client }: { client: Client }) {
  const query = useQuery(clientQuotasQuery(useScope(), client.id));
  const threshold = useQuery(thresholdQuery(client.id)).data?.threshold ?? null;
  return query.data ? <QuotaCards {...query.data} threshold={threshold} /> : <NotLoaded query={query} rows={6} />;
}
