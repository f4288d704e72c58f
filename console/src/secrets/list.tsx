import { useQuery } from '@tanstack/react-query';
import { nameColumn, statusColumn } from '../ui/columns.tsx';
import { ListPage } from '../ui/list-page.tsx';
import { type Scope, useScope } from '../ui/scope.tsx';
import type { Column } from '../ui/table.tsx';
import { Ago, timeOf } from '../ui/time.tsx';
import { type Secret, secretsQuery } from './data.ts';
import { Expiry } from './expiry.tsx';

const columnsOf = (scope: Scope): Column<Secret>[] => [
  nameColumn((secret) => scope.path('secrets', secret.id)),
  { key: 'type', title: 'Type', sortBy: (secret) => secret.secret_type },
  statusColumn,
  {
    key: 'expiration',
    title: 'Usable until',
    sortBy: (secret) => timeOf(secret.expiration),
    render: (secret) => <Expiry at={secret.expiration} />,
  },
  {
    key: 'created',
    title: 'Created',
    sortBy: (secret) => timeOf(secret.created),
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
