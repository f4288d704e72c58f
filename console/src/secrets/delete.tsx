import { DeleteDialog } from '../ui/form/delete-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { CurrentSecret, KIND, SECRET, secretParams } from './data.ts';

export function DeleteSecret() {
  const scope = useScope();
  return (
    <CurrentSecret>
      {(secret) => (
        <DeleteDialog
          kind="secret"
          name={secret.name}
          queryKind={KIND}
          listPath={scope.path('secrets')}
          call={{ operationId: 'deleteSecret', path: SECRET, params: secretParams(scope, secret.id) }}
        >
          The secret is deleted and cannot be read again. A secret that a load balancer uses cannot be deleted.
        </DeleteDialog>
      )}
    </CurrentSecret>
  );
}
