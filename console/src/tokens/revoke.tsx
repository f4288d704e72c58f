import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useNotAdminReason, useSession } from '../api/session.ts';
import { DialogRoute } from '../ui/dialog.tsx';
import { DeleteDialog } from '../ui/form/delete-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { NotLoaded } from '../ui/states.tsx';
import { KIND, nameOf, tokenQuery } from './data.ts';

const VERBS = { title: 'Revoke', busy: 'Revoking', done: 'Revoked' };

export function RevokeToken() {
  const scope = useScope();
  const session = useSession();
  const { token: id } = useParams({ strict: false }) as { token: string };
  const query = useQuery(tokenQuery(id));
  const reason = useNotAdminReason();
  const token = query.data;
  if (!token) {
    return (
      <DialogRoute title="Revoke token">
        <NotLoaded query={query} />
      </DialogRoute>
    );
  }
  return (
    <DeleteDialog
      kind="token"
      name={nameOf(token)}
      verbs={VERBS}
      queryKind={KIND}
      listPath={scope.path('tokens')}
      disabledReason={reason}
      call={{ operationId: 'revokeToken', path: '/cloudyard/v1/tokens/{token_id}', params: { token_id: token.id } }}
    >
      {token.id === session.token_id && <strong>You are signed in with this token; revoking it signs you out. </strong>}
      Every program that uses the token loses access within a second. This cannot be undone.
    </DeleteDialog>
  );
}
