import { useParams } from '@tanstack/react-router';
import { useLimitedReason } from '../api/session.ts';
import { ActionDialog } from '../ui/form/action-dialog.tsx';
import { useScope } from '../ui/scope.tsx';

export function DeleteQuotaRequest() {
  const scope = useScope();
  const { request } = useParams({ strict: false }) as { request: string };
  return (
    <ActionDialog
      title={`Delete request ${request}`}
      submitLabel="Delete request"
      disabledReason={useLimitedReason()}
      isDangerous
      calls={[
        {
          operationId: 'deleteQuotaRequest',
          method: 'DELETE',
          path: '/cloud/v2/limits_request/{request_id}',
          params: { request_id: request },
        },
      ]}
      texts={{ done: `Deleted request ${request}` }}
      queryKind="quota_requests"
      to={scope.path('quotas')}
    >
      <p>The operator can no longer approve it. Limits do not change.</p>
    </ActionDialog>
  );
}
