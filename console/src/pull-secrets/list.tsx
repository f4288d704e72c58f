import { useQuery } from '@tanstack/react-query';
import { nameColumn } from '../ui/columns.tsx';
import { ListPage } from '../ui/list-page.tsx';
import { type Scope, useScope } from '../ui/scope.tsx';
import type { Column } from '../ui/table.tsx';
import { Ago, timeOf } from '../ui/time.tsx';
import { type PullSecret, pullSecretsQuery } from './data.ts';

const columnsOf = (scope: Scope): Column<PullSecret>[] => [
  nameColumn((secret) => scope.path('pull-secrets', secret.name)),
  {
    key: 'registry',
    title: 'Registry',
    kind: 'wrap',
    sortBy: (secret) => secret.registry,
    render: (secret) => <bdi>{secret.registry}</bdi>,
  },
  {
    key: 'login',
    title: 'Login',
    sortBy: (secret) => secret.login,
    render: (secret) => <bdi>{secret.login}</bdi>,
  },
  {
    key: 'updated',
    title: 'Changed',
    sortBy: (secret) => timeOf(secret.updated_at),
    render: (secret) => <Ago at={secret.updated_at} />,
  },
];

export function PullSecretList() {
  const scope = useScope();
  return (
    <ListPage
      title="Pull secrets"
      description="Logins with which containers pull images from registries."
      query={useQuery(pullSecretsQuery(scope))}
      columns={columnsOf(scope)}
      rowKey={(secret) => secret.name}
      textOf={(secret) => `${secret.name} ${secret.registry} ${secret.login}`}
      create={{ label: 'Create pull secret', to: scope.path('pull-secrets', '~new') }}
      empty={{ title: 'No pull secrets yet', text: 'A pull secret is a login at a registry that is not public.' }}
    />
  );
}
