import { useQuery } from '@tanstack/react-query';
import { createdColumn, nameColumn } from '../ui/columns.tsx';
import { ListPage } from '../ui/list-page.tsx';
import { type Scope, useScope } from '../ui/scope.tsx';
import type { Column } from '../ui/table.tsx';
import { registriesQuery, type Registry } from './data.ts';
import { Usage } from './usage.tsx';

const columnsOf = (scope: Scope): Column<Registry>[] => [
  nameColumn((registry) => scope.path('registries', registry.id)),
  { key: 'url', title: 'URL', sortBy: (registry) => registry.url, render: (registry) => <code>{registry.url}</code> },
  {
    key: 'used',
    title: 'Storage',
    sortBy: (registry) => registry.storage_used,
    render: (registry) => <Usage registry={registry} />,
  },
  { key: 'repositories', title: 'Repositories', kind: 'number', sortBy: (registry) => registry.repo_count },
  createdColumn,
];

export function RegistryList() {
  const scope = useScope();
  return (
    <ListPage
      title="Registries"
      description="Private registries for container images."
      driverKind="registries"
      query={useQuery(registriesQuery(scope))}
      columns={columnsOf(scope)}
      rowKey={(registry) => registry.id}
      textOf={(registry) => `${registry.name} ${registry.id} ${registry.url}`}
      create={{ label: 'Create registry', to: scope.path('registries', 'new') }}
      empty={{ title: 'No registries yet', text: 'A registry stores container images that docker pushes and pulls.' }}
    />
  );
}
