import { DeleteDialog } from '../ui/form/delete-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { CurrentSubnet, SUBNET, subnetParams } from '../networks/data.ts';

export function DeleteSubnet() {
  const scope = useScope();
  return (
    <CurrentSubnet>
      {({ id, name }) => (
        <DeleteDialog
          kind="subnet"
          name={name}
          queryKind="subnets"
          listPath={scope.path('subnets')}
          call={{ operationId: 'deleteSubnet', path: SUBNET, params: subnetParams(scope, id) }}
        >
          The address range is released. A subnet that resources use cannot be deleted.
        </DeleteDialog>
      )}
    </CurrentSubnet>
  );
}
