import { useQuery } from '@tanstack/react-query';
import { messageOf } from '../api/errors.ts';
import { useNotClientAdminReason } from '../api/session.ts';
import { ActionDialog } from '../ui/form/action-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { useLoadError } from '../ui/states.tsx';
import { KIND, subscriptionQuery, USER_ACTIONS } from './data.ts';

export function Unsubscribe() {
  const scope = useScope();
  const reason = useNotClientAdminReason();
  const query = useQuery({ ...subscriptionQuery, enabled: reason === null });
  const { data } = query;
  const error = useLoadError(query) ?? query.error;
  if (data === undefined && !error && reason === null) return null;
  const missing = error ? messageOf(error) : 'The client has no subscription';
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
      disabledReason={reason ?? (data ? null : missing)}
    >
      <p>
        Actions that were not delivered yet are no longer sent
        {data && (
          <>
            {' '}
            to <code>{data.url}</code>
          </>
        )}
        . They stay in the list.
      </p>
    </ActionDialog>
  );
}
