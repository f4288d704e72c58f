import { DeleteDialog } from '../ui/form/delete-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { CurrentSnapshot, KIND, SNAPSHOT, snapshotParams } from './data.ts';

export function DeleteSnapshot() {
  const scope = useScope();
  return (
    <CurrentSnapshot>
      {({ id, name }) => (
        <DeleteDialog
          kind="snapshot"
          name={name}
          queryKind={KIND}
          listPath={scope.path('snapshots')}
          call={{ operationId: 'deleteSnapshot', path: SNAPSHOT, params: snapshotParams(scope, id) }}
        >
          The volume can no longer be reverted to this snapshot. Volumes that were created from it keep their data.
        </DeleteDialog>
      )}
    </CurrentSnapshot>
  );
}
