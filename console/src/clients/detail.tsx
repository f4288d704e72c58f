import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useNotClientAdminReason } from '../api/session.ts';
import { Card, DetailPage, Properties } from '../ui/detail-page.tsx';
import { usePageActions } from '../ui/page-actions.ts';
import { ActionLink } from '../ui/page-head.tsx';
import { auditTab } from '../ui/resource-tabs.tsx';
import { useScope } from '../ui/scope.tsx';
import { FullDate } from '../ui/time.tsx';
import { clientQuery } from './data.ts';
import type { Client } from './data.ts';

export function ClientDetail() {
  const { id } = useParams({ strict: false }) as { id: string };
  const scope = useScope();
  const reason = useNotClientAdminReason();
  const edit = scope.path('clients', id, 'edit');
  usePageActions([{ title: 'Edit this client', to: edit }]);
  return (
    <DetailPage
      crumbs={[{ title: 'Clients', to: scope.path('clients') }]}
      query={useQuery(clientQuery(id))}
      titleOf={(client) => client.name}
      actions={() => (
        <ActionLink to={edit} disabledReason={reason}>
          Edit
        </ActionLink>
      )}
      tabs={(client) => [
        { key: 'overview', title: 'Overview', render: () => <Overview client={client} /> },
        auditTab({ table: 'clients', id: client.id }),
      ]}
    />
  );
}

function Overview({ client }: { client: Client }) {
  const scope = useScope();
  const tokens = (
    <Link to={scope.path('tokens')} search={{ client: String(client.id) } as never}>
      Tokens of this client
    </Link>
  );
  return (
    <Card title="Properties" actions={tokens}>
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
