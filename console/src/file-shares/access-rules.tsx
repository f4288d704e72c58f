import { useQuery } from '@tanstack/react-query';
import { useReadOnlyReason } from '../api/session.ts';
import { Card } from '../ui/detail-page.tsx';
import { Icon } from '../ui/icons.tsx';
import { ActionLink } from '../ui/page-head.tsx';
import { useScope } from '../ui/scope.tsx';
import { EmptyState, NotLoaded } from '../ui/states.tsx';
import { StatusBadge } from '../ui/status.tsx';
import { Table } from '../ui/table.tsx';
import { type AccessRule, accessRulesQuery, type FileShare } from './data.ts';

export function AccessRules({ share }: { share: FileShare }) {
  const scope = useScope();
  const readOnly = useReadOnlyReason();
  const query = useQuery({ ...accessRulesQuery(scope, share.id), enabled: share.type_name === 'standard' });
  if (share.type_name !== 'standard') {
    return <EmptyState title="No access rules">Shares of the type {share.type_name} have no access rules.</EmptyState>;
  }
  if (!query.data) return <NotLoaded query={query} />;
  const add = (
    <ActionLink
      to={scope.path('file-shares', share.id, 'access-rules', 'new')}
      className="small"
      disabledReason={readOnly}
    >
      <Icon name="plus" /> Add access rule
    </ActionLink>
  );
  return (
    <Card title="Access rules" actions={add}>
      <Table
        label="Access rules"
        rows={query.data.results}
        rowKey={(rule) => rule.id}
        columns={[
          { key: 'to', title: 'Address or network', render: (rule) => <code>{rule.access_to}</code> },
          {
            key: 'level',
            title: 'Access',
            render: (rule) => (rule.access_level === 'rw' ? 'read and write' : 'read only'),
          },
          { key: 'state', title: 'State', kind: 'wrap', render: (rule) => <State rule={rule} /> },
          {
            key: 'actions',
            title: 'Actions',
            kind: 'actions',
            render: (rule) => (
              <ActionLink
                to={scope.path('file-shares', share.id, 'access-rules', rule.id, 'remove')}
                className="quiet small danger"
                disabledReason={readOnly}
              >
                Remove<span className="visually-hidden"> the rule for {rule.access_to}</span>
              </ActionLink>
            ),
          },
        ]}
        empty={
          <EmptyState title="Nobody may mount this share">An access rule allows an address or a network.</EmptyState>
        }
      />
    </Card>
  );
}

/** A change of a rule has no task, and the API does not return why it failed. */
function State({ rule }: { rule: AccessRule }) {
  return (
    <>
      <StatusBadge status={rule.state} />
      {rule.state === 'error' && (
        <p className="small muted">
          The host did not apply the change. Remove the rule, and add it again if it is needed. The server log has the
          cause.
        </p>
      )}
    </>
  );
}
