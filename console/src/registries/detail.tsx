import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useReadOnlyReason } from '../api/session.ts';
import { CodeBlock, CopyableText } from '../ui/copy.tsx';
import { Card, DetailPage, Properties } from '../ui/detail-page.tsx';
import { ActionLinks } from '../ui/page-head.tsx';
import { usePageActions } from '../ui/page-actions.ts';
import { auditTab } from '../ui/resource-tabs.tsx';
import { useScope } from '../ui/scope.tsx';
import { Ago } from '../ui/time.tsx';
import { loginCommand, pushCommands } from './commands.ts';
import { type Registry, registryQuery, usersQuery } from './data.ts';
import { Repositories } from './repositories.tsx';
import { Usage } from './usage.tsx';
import { Users } from './users.tsx';

export function RegistryDetail() {
  const { id } = useParams({ strict: false }) as { id: string };
  const scope = useScope();
  usePageActions([
    { title: 'Create a user of this registry', to: scope.path('registries', id, 'users', 'new') },
    { title: 'Resize this registry', to: scope.path('registries', id, 'resize') },
    { title: 'Delete this registry', to: scope.path('registries', id, 'delete') },
  ]);
  return (
    <DetailPage
      crumbs={[{ title: 'Registries', to: scope.path('registries') }]}
      query={useQuery(registryQuery(scope, id))}
      driverKind="registries"
      titleOf={(registry) => registry.name}
      actions={(registry) => <Actions registry={registry} />}
      tabs={(registry) => [
        { key: 'overview', title: 'Overview', render: () => <Overview registry={registry} /> },
        {
          key: 'repositories',
          title: `Repositories (${registry.repo_count})`,
          render: () => <Repositories registry={registry} />,
        },
        { key: 'users', title: 'Users', render: () => <Users registry={registry} /> },
        // Registries have no tags, and change without tasks.
        auditTab({ table: 'registries', id: registry.id }),
      ]}
    />
  );
}

function Actions({ registry }: { registry: Registry }) {
  const scope = useScope();
  const readOnly = useReadOnlyReason();
  const to = (action: string) => scope.path('registries', registry.id, action);
  return <ActionLinks actions={{ resize: 'Resize', delete: 'Delete' }} to={to} disabledReason={readOnly} />;
}

function Overview({ registry }: { registry: Registry }) {
  const scope = useScope();
  const users = useQuery(usersQuery(scope, registry.id)).data?.results ?? [];
  const user = (users.find((each) => !each.read_only) ?? users[0])?.name ?? 'USER';
  return (
    <>
      <Card title="Properties">
        <Properties
          items={{
            Storage: <Usage registry={registry} />,
            Repositories: registry.repo_count,
            Created: <Ago at={registry.created_at} />,
            ID: registry.id,
            URL: <CopyableText text={registry.url} what="URL" />,
          }}
        />
      </Card>
      <Card title="Push an image">
        <div className="card-body stack">
          <p className="muted">
            {users.length === 0
              ? 'Create a user first, on the tab Users. Then log in; docker asks for the secret of the user:'
              : 'Log in; docker asks for the secret of the user:'}
          </p>
          <CodeBlock what="login command" text={loginCommand(registry, user)} />
          <p className="muted">Tag an image with the URL of the registry and push it:</p>
          <CodeBlock what="push commands" text={pushCommands(registry)} />
        </div>
      </Card>
    </>
  );
}
