import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ListPage } from '../ui/list-page.tsx';
import { useScope } from '../ui/scope.tsx';
import type { Scope } from '../ui/scope.tsx';
import { StatusBadge } from '../ui/status.tsx';
import type { Column } from '../ui/table.tsx';
import { Ago, parseDate } from '../ui/time.tsx';
import { secretsQuery } from './data.ts';
import type { Secret } from './data.ts';
import { Expiry } from './expiry.tsx';

const columnsOf = (scope: Scope): Column<Secret>[] => [
  {
    key: 'name',
    title: 'Name',
    kind: 'name',
    sortBy: (secret) => secret.name,
    render: (secret) => (
      <Link to={scope.path('secrets', secret.id)}>
        <bdi>{secret.name}</bdi>
      </Link>
    ),
  },
  { key: 'type', title: 'Type', sortBy: (secret) => secret.secret_type, render: (secret) => secret.secret_type },
  {
    key: 'status',
    title: 'Status',
    sortBy: (secret) => secret.status,
    render: (secret) => <StatusBadge status={secret.status} />,
  },
  {
    key: 'expiration',
    title: 'Usable until',
    sortBy: (secret) => (secret.expiration === null ? null : parseDate(secret.expiration).getTime()),
    render: (secret) => <Expiry at={secret.expiration} />,
  },
  {
    key: 'created',
    title: 'Created',
    sortBy: (secret) => parseDate(secret.created).getTime(),
    render: (secret) => <Ago at={secret.created} />,
  },
];

export function SecretList() {
  const scope = useScope();
  return (
    <ListPage
      title="Secrets"
      description="Certificates of load balancers, stored encrypted."
      query={useQuery(secretsQuery(scope))}
      columns={columnsOf(scope)}
      rowKey={(secret) => secret.id}
      textOf={(secret) => `${secret.name} ${secret.id}`}
      filters={[{ name: 'type', label: 'Type', valueOf: (secret) => secret.secret_type }]}
      create={{ label: 'Create secret', to: scope.path('secrets', 'new') }}
      empty={{
        title: 'No secrets yet',
        text: 'A secret holds a certificate with its private key, which listeners use to decrypt HTTPS.',
      }}
    />
  );
}
