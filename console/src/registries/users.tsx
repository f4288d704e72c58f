import { useQuery } from '@tanstack/react-query';
import { useReadOnlyReason } from '../api/session.ts';
import { Card } from '../ui/detail-page.tsx';
import { Icon } from '../ui/icons.tsx';
import { Rows } from '../ui/list-page.tsx';
import { ActionLink } from '../ui/page-head.tsx';
import { useScope } from '../ui/scope.tsx';
import { Ago, FullDate } from '../ui/time.tsx';
import { dateOrNever, type Registry, type RegistryUser, usersQuery } from './data.ts';

export function Users({ registry }: { registry: Registry }) {
  const scope = useScope();
  const readOnly = useReadOnlyReason();
  const add = (
    <ActionLink to={scope.path('registries', registry.id, 'users', 'new')} className="small" disabledReason={readOnly}>
      <Icon name="plus" /> Create user
    </ActionLink>
  );
  return (
    <Card title="Users" actions={add}>
      <Rows
        title="Users"
        query={useQuery(usersQuery(scope, registry.id))}
        rowKey={(user) => user.id}
        textOf={(user) => user.name}
        empty={{ title: 'No users', text: 'A user logs in to the registry to push and pull images.' }}
        columns={[
          { key: 'name', title: 'Name', sortBy: (user) => user.name },
          { key: 'access', title: 'Access', render: (user) => (user.read_only ? 'pull' : 'push and pull') },
          { key: 'expires', title: 'Expires', render: (user) => <Expiry user={user} /> },
          { key: 'created', title: 'Created', render: (user) => <Ago at={user.created_at} /> },
          {
            key: 'actions',
            title: 'Actions',
            kind: 'actions',
            render: (user) => <UserActions registry={registry} user={user} />,
          },
        ]}
      />
    </Card>
  );
}

function Expiry({ user }: { user: RegistryUser }) {
  const at = dateOrNever(user.expires_at);
  return at === null ? <span className="muted">never</span> : <FullDate at={at} />;
}

function UserActions({ registry, user }: { registry: Registry; user: RegistryUser }) {
  const scope = useScope();
  const readOnly = useReadOnlyReason();
  const to = (action: string) => scope.path('registries', registry.id, 'users', user.id, action);
  const name = <span className="visually-hidden"> {user.name}</span>;
  return (
    <>
      <ActionLink to={to('edit')} className="small quiet" disabledReason={readOnly}>
        Edit{name}
      </ActionLink>
      <ActionLink to={to('secret')} className="small quiet" disabledReason={readOnly}>
        Replace secret{name}
      </ActionLink>
      <ActionLink to={to('delete')} className="small quiet danger" disabledReason={readOnly}>
        Delete{name}
      </ActionLink>
    </>
  );
}
