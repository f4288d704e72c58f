import { useLimitedReason, useSession } from '../api/session.ts';
import { ActionDialog } from '../ui/form/action-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { THRESHOLD } from './data.ts';

export function ResetThreshold() {
  const scope = useScope();
  const { client_id } = useSession();
  const limited = useLimitedReason();
  return (
    <ActionDialog
      title="Reset the notification threshold"
      submitLabel="Reset"
      calls={[
        {
          operationId: 'deleteNotificationThreshold',
          method: 'DELETE',
          path: THRESHOLD,
          params: { client_id },
        },
      ]}
      texts={{ done: 'The default threshold applies again' }}
      queryKind="thresholds"
      to={scope.path('quotas')}
      disabledReason={limited}
    >
      <p>Notifications are sent again when a quota reaches the default of 80 %.</p>
    </ActionDialog>
  );
}
