import { DeleteDialog } from '../ui/form/delete-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { CurrentShare, KIND, SHARE, shareParams } from './data.ts';

export function DeleteFileShare() {
  const scope = useScope();
  return (
    <CurrentShare>
      {(share) => (
        <DeleteDialog
          kind="file share"
          name={share.name}
          queryKind={KIND}
          listPath={scope.path('file-shares')}
          call={{ operationId: 'deleteFileShare', path: SHARE, params: shareParams(scope, share.id) }}
        >
          All files on the share are deleted, and machines that mount it lose it. This cannot be undone.
        </DeleteDialog>
      )}
    </CurrentShare>
  );
}
