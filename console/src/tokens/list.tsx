import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useNotAdminReason } from '../api/session.ts';
import { createdColumn } from '../ui/columns.tsx';
import { ListPage } from '../ui/list-page.tsx';
import { useListState } from '../ui/list-state.ts';
import { ActionLink } from '../ui/page-head.tsx';
import { projectsQuery, type Scope, useScope } from '../ui/scope.tsx';
import { StatusBadge } from '../ui/status.tsx';
import type { Column } from '../ui/table.tsx';
import { Ago, FullDate, timeOf } from '../ui/time.tsx';
import { ClientChoice } from './client-choice.tsx';
import { nameOf, type Token, tokensQuery } from './data.ts';

const columnsOf = (scope: Scope, names: ReadonlyMap<number, string>): Column<Token>[] => [
  {
    key: 'name',
    title: 'Name',
    kind: 'name',
    sortBy: nameOf,
    render: (token) => (
      <>
        <Link to={scope.path('tokens', token.id)}>{nameOf(token)}</Link>{' '}
        {token.name !== '' && <span className="mono muted">{token.key_id}</span>}
      </>
    ),
  },
  {
    key: 'state',
    title: 'State',
    sortBy: (token) => token.state,
    render: (token) => <StatusBadge status={token.state} />,
  },
  { key: 'role', title: 'Role', sortBy: (token) => token.role },
  {
    key: 'projects',
    title: 'Projects',
    kind: 'wrap',
    render: ({ project_ids }) => <bdi>{project_ids?.map((id) => names.get(id) ?? id).join(', ') ?? 'all'}</bdi>,
  },
  {
    key: 'used',
    title: 'Last used',
    sortBy: (token) => timeOf(token.last_used_at),
    render: (token) => (token.last_used_at === null ? 'never' : <Ago at={token.last_used_at} />),
  },
  {
    key: 'expires',
    title: 'Expires',
    sortBy: (token) => timeOf(token.expires_at),
    render: (token) => (token.expires_at === null ? 'never' : <FullDate at={token.expires_at} />),
  },
  createdColumn,
  { key: 'actions', title: 'Actions', kind: 'actions', render: (token) => <Revoke token={token} /> },
];

export function TokenList() {
  const scope = useScope();
  const client = useListState().get('client');
  const projects = useQuery(projectsQuery).data?.results ?? [];
  return (
    <ListPage
      title="Tokens"
      description="A program or person calls the API with a token. The secret is shown once, when the token is created."
      actions={<ClientChoice />}
      query={useQuery(tokensQuery(client === '' ? null : Number(client)))}
      columns={columnsOf(scope, new Map(projects.map(({ id, name }) => [id, name])))}
      rowKey={(token) => token.id}
      textOf={(token) => `${token.name} ${token.key_id}`}
      filters={[
        { name: 'state', label: 'State', valueOf: (token) => token.state },
        { name: 'role', label: 'Role', valueOf: (token) => token.role },
      ]}
      create={{ label: 'Create token', to: scope.path('tokens', 'new'), disabledReason: useNotAdminReason() }}
      empty={{ title: 'No tokens', text: 'This client has no token yet.' }}
    />
  );
}

function Revoke({ token }: { token: Token }) {
  const scope = useScope();
  const reason = useNotAdminReason();
  if (token.state === 'revoked') return null;
  return (
    <ActionLink to={scope.path('tokens', token.id, 'revoke')} className="small quiet danger" disabledReason={reason}>
      Revoke <span className="visually-hidden">{nameOf(token)}</span>
    </ActionLink>
  );
}
