import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ListPage } from '../ui/list-page.tsx';
import { useScope } from '../ui/scope.tsx';
import type { Scope } from '../ui/scope.tsx';
import type { Column } from '../ui/table.tsx';
import { Ago, parseDate } from '../ui/time.tsx';
import { registriesQuery } from './data.ts';
import type { Registry } from './data.ts';
import { Usage } from './usage.tsx';

const columnsOf = (scope: Scope): Column<Registry>[] => [
  {
    key: 'name',
    title: 'Name',
    kind: 'name',
    sortBy: (registry) => registry.name,
    render: (registry) => <Link to={scope.path('registries', registry.id)}>{registry.name}</Link>,
  },
  { key: 'url', title: 'URL', sortBy: (registry) => registry.url, render: (registry) => <code>{registry.url}</code> },
  {
    key: 'used',
    title: 'Storage',
    sortBy: (registry) => registry.storage_used,
    render: (registry) => <Usage registry={registry} />,
  },
  {
    key: 'repositories',
    title: 'Repositories',
    kind: 'number',
    sortBy: (registry) => registry.repo_count,
    render: (registry) => registry.repo_count,
  },
  {
    key: 'created',
    title: 'Created',
    sortBy: (registry) => parseDate(registry.created_at).getTime(),
    render: (registry) => <Ago at={registry.created_at} />,
  },
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
