import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useReadOnlyReason } from '../api/session.ts';
import { secretUsesQuery } from '../load-balancers/data.ts';
import { CopyableText } from '../ui/copy.tsx';
import { Card, DetailPage, Properties } from '../ui/detail-page.tsx';
import { usePageActions } from '../ui/page-actions.ts';
import { ActionLink } from '../ui/page-head.tsx';
import { resourceTabs } from '../ui/resource-tabs.tsx';
import { useScope } from '../ui/scope.tsx';
import { EmptyState, NotLoaded } from '../ui/states.tsx';
import { Table } from '../ui/table.tsx';
import { FullDate } from '../ui/time.tsx';
import { type Secret, secretQuery } from './data.ts';
import { Expiry } from './expiry.tsx';

export function SecretDetail() {
  const { id } = useParams({ strict: false }) as { id: string };
  const scope = useScope();
  const readOnly = useReadOnlyReason();
  const deletePath = scope.path('secrets', id, 'delete');
  usePageActions([{ title: 'Delete this secret', to: deletePath }]);
  return (
    <DetailPage
      crumbs={[{ title: 'Secrets', to: scope.path('secrets') }]}
      query={useQuery(secretQuery(scope, id))}
      titleOf={(secret) => secret.name}
      statusOf={(secret) => secret.status}
      actions={() => (
        <ActionLink to={deletePath} className="danger" disabledReason={readOnly}>
          Delete
        </ActionLink>
      )}
      tabs={(secret) => [
        { key: 'overview', title: 'Overview', render: () => <Overview secret={secret} /> },
        // Secrets have no tags.
        ...resourceTabs({ table: 'secrets', id: secret.id }),
      ]}
    />
  );
}

function Overview({ secret }: { secret: Secret }) {
  const { content_types } = secret;
  return (
    <>
      <Card title="Properties">
        <Properties
          items={{
            Type: secret.secret_type,
            'Usable until': <Expiry at={secret.expiration} />,
            'Media type': Object.values(content_types ?? {}).join(', ') || null,
            Algorithm: secret.algorithm && <bdi>{secret.algorithm}</bdi>,
            'Key length': secret.bit_length === null ? null : `${secret.bit_length} bits`,
            Mode: secret.mode && <bdi>{secret.mode}</bdi>,
            Created: <FullDate at={secret.created} />,
            ID: <CopyableText text={secret.id} what="ID" />,
          }}
        />
      </Card>
      <Uses id={secret.id} />
    </>
  );
}

/** The listeners and pools that use the secret. */
function Uses({ id }: { id: string }) {
  const scope = useScope();
  const query = useQuery(secretUsesQuery(scope, id));
  if (!query.data) return <NotLoaded query={query} />;
  return (
    <Card title="Used by">
      <Table
        label="Used by"
        rows={query.data}
        rowKey={(use) => use.id}
        columns={[
          {
            key: 'name',
            title: 'Name',
            kind: 'name',
            render: (use) => (
              <Link
                to={scope.path('load-balancers', use.balancerId)}
                search={{ tab: use.kind === 'listener' ? 'listeners' : 'pools' } as never}
              >
                {use.name}
              </Link>
            ),
          },
          { key: 'kind', title: 'Kind', render: (use) => use.kind },
          { key: 'as', title: 'As', render: (use) => use.as },
        ]}
        empty={<EmptyState title="Not used">No listener and no pool uses this secret.</EmptyState>}
      />
    </Card>
  );
}
