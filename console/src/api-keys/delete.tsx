import { DeleteDialog } from '../ui/form/delete-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { CurrentKey, KEY, keyParams, KIND } from './data.ts';

export function DeleteApiKey() {
  const scope = useScope();
  return (
    <CurrentKey>
      {({ name }) => (
        <DeleteDialog
          kind="API key"
          name={name}
          queryKind={KIND}
          listPath={scope.path('api-keys')}
          call={{ operationId: 'deleteApiKey', path: KEY, params: keyParams(scope, name) }}
        >
          Servers reject the key from now on. This cannot be undone.
        </DeleteDialog>
      )}
    </CurrentKey>
  );
}
