import { DeleteDialog } from '../ui/form/delete-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { CurrentVolume, KIND, VOLUME, type Volume, volumeParams } from './data.ts';

export function DeleteVolume() {
  const scope = useScope();
  return (
    <CurrentVolume>
      {(volume) => (
        <DeleteDialog
          kind="volume"
          name={volume.name}
          queryKind={KIND}
          listPath={scope.path('volumes')}
          call={{ operationId: 'deleteVolume', path: VOLUME, params: volumeParams(scope, volume.id) }}
        >
          {lossOf(volume)} This cannot be undone.
        </DeleteDialog>
      )}
    </CurrentVolume>
  );
}

function lossOf({ snapshot_ids: { length } }: Volume): string {
  if (length === 0) return 'The data of the volume is deleted.';
  return `The data of the volume and ${length === 1 ? 'its snapshot are' : `its ${length} snapshots are`} deleted.`;
}
