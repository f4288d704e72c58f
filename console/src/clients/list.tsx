import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useNotOperatorReason } from '../api/session.ts';
import { createdColumn, nameColumn } from '../ui/columns.tsx';
import { ListPage } from '../ui/list-page.tsx';
import { ActionLink } from '../ui/page-head.tsx';
import { type Scope, useScope } from '../ui/scope.tsx';
import type { Column } from '../ui/table.tsx';
import { type Client, clientsQuery } from './data.ts';

const columnsOf = (scope: Scope): Column<Client>[] => [
  nameColumn((client) => scope.path('clients', client.id)),
  { key: 'id', title: 'ID', kind: 'number', sortBy: (client) => client.id },
  {
    key: 'emails',
    title: 'E-mail addresses',
    kind: 'wrap',
    render: (client) => <bdi>{client.emails.join(', ')}</bdi>,
  },
  {
    key: 'tokens',
    title: 'Tokens',
    render: (client) => (
      <Link to={scope.path('tokens')} search={{ client: String(client.id) } as never}>
        Tokens <span className="visually-hidden">of {client.name}</span>
      </Link>
    ),
  },
  createdColumn,
  { key: 'actions', title: 'Actions', kind: 'actions', render: (client) => <Edit client={client} /> },
];

export function ClientList() {
  const scope = useScope();
  return (
    <ListPage
      title="Clients"
      description="Each client has its own projects, tokens and quotas."
      query={useQuery(clientsQuery)}
      columns={columnsOf(scope)}
      rowKey={(client) => client.id}
      textOf={(client) => [client.name, client.id, ...client.emails].join(' ')}
      create={{ label: 'Create client', to: scope.path('clients', 'new'), disabledReason: useNotOperatorReason() }}
      empty={{ title: 'No clients', text: 'A client is a customer or team that uses this Cloudyard.' }}
    />
  );
}

function Edit({ client }: { client: Client }) {
  const scope = useScope();
  const reason = useNotOperatorReason();
  return (
    <ActionLink to={scope.path('clients', client.id, 'edit')} className="small quiet" disabledReason={reason}>
      Edit <span className="visually-hidden">{client.name}</span>
    </ActionLink>
  );
}
