import { DeleteDialog } from '../ui/form/delete-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { CurrentNetwork, NETWORK, networkParams } from './data.ts';

export function DeleteNetwork() {
  const scope = useScope();
  return (
    <CurrentNetwork>
      {({ id, name }) => (
        <DeleteDialog
          kind="network"
          name={name}
          queryKind="networks"
          listPath={scope.path('networks')}
          call={{ operationId: 'deleteNetwork', path: NETWORK, params: networkParams(scope, id) }}
        >
          The network and its subnets are deleted. A network that resources use cannot be deleted.
        </DeleteDialog>
      )}
    </CurrentNetwork>
  );
}
