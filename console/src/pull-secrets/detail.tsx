import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useReadOnlyReason } from '../api/session.ts';
import { Card, DetailPage, Properties } from '../ui/detail-page.tsx';
import { ActionLinks } from '../ui/page-head.tsx';
import { usePageActions } from '../ui/page-actions.ts';
import { auditTabByName } from '../ui/resource-tabs.tsx';
import { useScope } from '../ui/scope.tsx';
import { Ago } from '../ui/time.tsx';
import { type PullSecret, pullSecretQuery } from './data.ts';

export function PullSecretDetail() {
  const { name } = useParams({ strict: false }) as { name: string };
  const scope = useScope();
  const to = (action: string) => scope.path('pull-secrets', name, action);
  usePageActions([
    { title: 'Verify this pull secret', to: to('verify') },
    { title: 'Edit this pull secret', to: to('edit') },
    { title: 'Delete this pull secret', to: to('delete') },
  ]);
  return (
    <DetailPage
      crumbs={[{ title: 'Pull secrets', to: scope.path('pull-secrets') }]}
      query={useQuery(pullSecretQuery(scope, name))}
      titleOf={(secret) => secret.name}
      actions={(secret) => <Actions secret={secret} />}
      tabs={(secret) => [
        { key: 'overview', title: 'Overview', render: () => <Overview secret={secret} /> },
        auditTabByName(scope, 'pull_secrets', secret.name),
      ]}
    />
  );
}

function Actions({ secret }: { secret: PullSecret }) {
  const scope = useScope();
  const readOnly = useReadOnlyReason();
  const to = (action: string) => scope.path('pull-secrets', secret.name, action);
  const actions = { verify: 'Verify', edit: 'Edit', delete: 'Delete' };
  return <ActionLinks actions={actions} to={to} disabledReason={readOnly} />;
}

function Overview({ secret }: { secret: PullSecret }) {
  return (
    <Card title="Properties">
      <Properties
        items={{
          Registry: <bdi>{secret.registry}</bdi>,
          Login: <bdi>{secret.login}</bdi>,
          Password: 'stored encrypted, not shown',
          Changed: <Ago at={secret.updated_at} />,
        }}
      />
    </Card>
  );
}
