import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useReadOnlyReason } from '../api/session.ts';
import { Card, DetailPage, Properties } from '../ui/detail-page.tsx';
import { ActionLink } from '../ui/page-head.tsx';
import { usePageActions } from '../ui/page-actions.ts';
import { auditTabByName } from '../ui/resource-tabs.tsx';
import { useScope } from '../ui/scope.tsx';
import { EmptyState } from '../ui/states.tsx';
import { Table } from '../ui/table.tsx';
import { Ago, FullDate } from '../ui/time.tsx';
import { type ApiKey, apiKeyQuery } from './data.ts';

export function ApiKeyDetail() {
  const { name } = useParams({ strict: false }) as { name: string };
  const scope = useScope();
  const query = useQuery(apiKeyQuery(scope, name));
  const to = (action: string) => scope.path('api-keys', name, action);
  usePageActions([
    { title: 'Edit this API key', to: to('edit') },
    query.data?.is_disabled
      ? { title: 'Enable this API key', to: to('enable') }
      : { title: 'Disable this API key', to: to('disable') },
    { title: 'Verify this API key', to: to('verify') },
    { title: 'Delete this API key', to: to('delete') },
  ]);
  return (
    <DetailPage
      crumbs={[{ title: 'API keys', to: scope.path('api-keys') }]}
      query={query}
      titleOf={(key) => key.name}
      statusOf={(key) => key.status}
      actions={(key) => <Actions apiKey={key} />}
      tabs={(key) => [
        { key: 'overview', title: 'Overview', render: () => <Overview apiKey={key} /> },
        auditTabByName(scope, 'api_keys', key.name),
      ]}
    />
  );
}

function Actions({ apiKey }: { apiKey: ApiKey }) {
  const scope = useScope();
  const readOnly = useReadOnlyReason();
  const to = (action: string) => scope.path('api-keys', apiKey.name, action);
  return (
    <>
      <ActionLink to={to('edit')} disabledReason={readOnly}>
        Edit
      </ActionLink>
      <ActionLink to={to(apiKey.is_disabled ? 'enable' : 'disable')} disabledReason={readOnly}>
        {apiKey.is_disabled ? 'Enable' : 'Disable'}
      </ActionLink>
      <ActionLink to={to('verify')}>Verify</ActionLink>
      <ActionLink to={to('delete')} className="danger" disabledReason={readOnly}>
        Delete
      </ActionLink>
    </>
  );
}

function Overview({ apiKey }: { apiKey: ApiKey }) {
  return (
    <>
      <Card title="Properties">
        <Properties
          items={{
            Expires: apiKey.expire === null ? 'never' : <FullDate at={apiKey.expire} />,
            Created: <Ago at={apiKey.created_at} />,
            Description: apiKey.description === '' ? null : <bdi>{apiKey.description}</bdi>,
          }}
        />
      </Card>
      <Card title="Containers that the key opens">
        <Table
          label="Containers that the key opens"
          rows={apiKey.containers}
          rowKey={({ namespace, name }) => `${namespace}/${name}`}
          columns={[
            { key: 'namespace', title: 'Namespace', kind: 'wrap', render: ({ namespace }) => <bdi>{namespace}</bdi> },
            { key: 'name', title: 'Container', render: ({ name }) => name },
          ]}
          empty={<EmptyState title="No containers">The key opens nothing. Edit it to add containers.</EmptyState>}
        />
      </Card>
    </>
  );
}
