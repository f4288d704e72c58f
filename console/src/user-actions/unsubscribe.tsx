import { useQuery } from '@tanstack/react-query';
import { ActionDialog } from '../ui/form/action-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { KIND, subscriptionQuery, USER_ACTIONS, useNotSubscriberReason } from './data.ts';

export function Unsubscribe() {
  const scope = useScope();
  const reason = useNotSubscriberReason();
  const { data, isPending } = useQuery({ ...subscriptionQuery, enabled: reason === null });
  if (isPending && reason === null) return null;
  return (
    <ActionDialog
      title="Unsubscribe from user actions"
      submitLabel="Unsubscribe"
      isDangerous
      calls={[
        {
          operationId: 'unsubscribeFromUserActions',
          method: 'POST',
          path: `${USER_ACTIONS}/unsubscribe`,
          params: {},
        },
      ]}
      texts={{ done: 'Unsubscribed from user actions' }}
      queryKind={KIND}
      to={scope.path('user-actions')}
      disabledReason={reason ?? (data ? null : 'The client has no subscription')}
    >
      <p>{data && <code>{data.url}</code>} Actions that were not delivered yet are not sent. They stay in the list.</p>
    </ActionDialog>
  );
}
