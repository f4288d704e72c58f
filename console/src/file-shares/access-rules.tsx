import { useQuery, useMutation } from '@tanstack/react-query';
import { api, unwrap } from '../api/client.ts';
import { messageOf } from '../api/errors.ts';
import { queryClient } from '../api/query-client.ts';
import { useReadOnlyReason } from '../api/session.ts';
import { Card } from '../ui/detail-page.tsx';
import { Icon } from '../ui/icons.tsx';
import { ActionLink } from '../ui/page-head.tsx';
import { scopeParams, useScope } from '../ui/scope.tsx';
import { EmptyState, ErrorState, Skeleton } from '../ui/states.tsx';
import { StatusBadge } from '../ui/status.tsx';
import { Table } from '../ui/table.tsx';
import { showToast } from '../ui/toasts.tsx';
import { accessRulesQuery, KIND } from './data.ts';
import type { AccessRule, FileShare } from './data.ts';

export function AccessRules({ share }: { share: FileShare }) {
  const scope = useScope();
  const readOnly = useReadOnlyReason();
  const query = useQuery({ ...accessRulesQuery(scope, share.id), enabled: share.type_name === 'standard' });
  if (share.type_name !== 'standard') {
    return <EmptyState title="No access rules">Shares of the type {share.type_name} have no access rules.</EmptyState>;
  }
  if (query.isPending) return <Skeleton />;
  if (query.error) return <ErrorState error={query.error} retry={() => void query.refetch()} />;
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
      {query.data.results.length === 0 ? (
        <EmptyState title="Nobody may mount this share">An access rule allows an address or a network.</EmptyState>
      ) : (
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
            { key: 'state', title: 'State', render: (rule) => <StatusBadge status={rule.state} /> },
            {
              key: 'actions',
              title: 'Actions',
              kind: 'actions',
              render: (rule) => <RemoveRule share={share} rule={rule} />,
            },
          ]}
        />
      )}
    </Card>
  );
}

function RemoveRule({ share, rule }: { share: FileShare; rule: AccessRule }) {
  const scope = useScope();
  const readOnly = useReadOnlyReason();
  const removal = useMutation({
    mutationFn: () =>
      unwrap(
        api.DELETE('/cloud/v1/file_shares/{project_id}/{region_id}/{file_share_id}/access_rule/{access_rule_id}', {
          params: { path: { ...scopeParams(scope), file_share_id: share.id, access_rule_id: rule.id } },
        }),
      ),
    onSuccess: () => showToast({ tone: 'ok', text: `Removed the access of ${rule.access_to}` }),
    onError: (error) => showToast({ tone: 'bad', text: `${rule.access_to}: ${messageOf(error)}` }),
    onSettled: () => queryClient.invalidateQueries({ queryKey: [KIND] }),
  });
  return (
    <button
      type="button"
      className="button quiet small danger"
      disabled={removal.isPending || readOnly !== null}
      title={readOnly ?? undefined}
      onClick={() => removal.mutate()}
    >
      Remove <span className="visually-hidden">the rule for {rule.access_to}</span>
    </button>
  );
}
