import { DeleteDialog } from '../ui/form/delete-dialog.tsx';
import { scopeParams, useScope } from '../ui/scope.tsx';
import { CurrentShare, KIND } from './data.ts';

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
          call={{
            operationId: 'deleteFileShare',
            path: '/cloud/v1/file_shares/{project_id}/{region_id}/{file_share_id}',
            params: { ...scopeParams(scope), file_share_id: share.id },
          }}
        >
          All files on the share are deleted, and machines that mount it lose it. This cannot be undone.
        </DeleteDialog>
      )}
    </CurrentShare>
  );
}
